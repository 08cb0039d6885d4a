#include <set>

#include "chat/built_in.h"
#include "chat/evaluator.h"
#include "chat/operators.h"
#include "chat/print.h"

namespace heed::chat {

Value Evaluator::evaluate(const Expression& expression, Scope& scope) {
  const Nesting nesting(runtime_);
  runtime_.set_line(expression.line);
  runtime_.count_steps(1);
  return std::visit([&](const auto& node) { return value_of(node, scope); }, expression.node);
}

Value Evaluator::value_of(const LiteralNode& node, Scope&) { return node.value; }

Value Evaluator::value_of(const NameNode& node, Scope& scope) {
  runtime_.count_read(node.name.size());
  return look_up(node.name, scope);
}

Value Evaluator::look_up(const std::string& name, const Scope& scope) {
  for (const Scope* around = &scope; around != nullptr; around = around->outer) {
    const auto found = around->variables.find(name);
    if (found != around->variables.end()) return found->second;
  }
  return global_function(runtime_, name);
}

Value Evaluator::value_of(const ListNode& node, Scope& scope) {
  std::vector<Value> items;
  for (const ExpressionPointer& item : node.items) items.push_back(evaluate(*item, scope));
  return runtime_.new_list(std::move(items), node.kind);
}

Value Evaluator::value_of(const DictNode& node, Scope& scope) {
  Dict* const dict = runtime_.new_dict();
  for (const auto& [key, value] : node.entries) {
    const Value name = evaluate(*key, scope);
    if (!Dict::can_be_key(name)) {
      runtime_.fail("a value of type {} cannot be a key", type_name(name));
    }
    dict->set(runtime_, name, evaluate(*value, scope));
  }
  return dict;
}

Value Evaluator::value_of(const UnaryNode& node, Scope& scope) {
  return apply_unary(runtime_, node.operation, evaluate(*node.operand, scope));
}

Value Evaluator::value_of(const BinaryNode& node, Scope& scope) {
  Value left = evaluate(*node.left, scope);
  if (node.operation == BinaryOperator::logical_and) {
    return truth(left) ? evaluate(*node.right, scope) : left;
  }
  if (node.operation == BinaryOperator::logical_or) {
    return truth(left) ? left : evaluate(*node.right, scope);
  }
  return apply_binary(runtime_, node.operation, left, evaluate(*node.right, scope));
}

Value Evaluator::value_of(const ComparisonNode& node, Scope& scope) {
  Value left = evaluate(*node.first, scope);
  for (const ComparisonNode::Link& link : node.links) {
    Value right = evaluate(*link.right, scope);
    if (!truth(apply_binary(runtime_, link.operation, left, right))) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::value_of(const ConcatenationNode& node, Scope& scope) {
  Text text;
  for (const ExpressionPointer& part : node.parts) {
    text.append(to_text(runtime_, evaluate(*part, scope)));
    runtime_.require_text_size(text.size());
  }
  return runtime_.text(std::move(text));
}

Value Evaluator::value_of(const ConditionalNode& node, Scope& scope) {
  if (truth(evaluate(*node.test, scope))) return evaluate(*node.value, scope);
  if (node.otherwise != nullptr) return evaluate(*node.otherwise, scope);
  return Value::undefined("the value of an 'if' without 'else'");
}

Value Evaluator::value_of(const AttributeNode& node, Scope& scope) {
  return attribute_of(runtime_, evaluate(*node.object, scope), node.name);
}

Value Evaluator::value_of(const ItemNode& node, Scope& scope) {
  const Value object = evaluate(*node.object, scope);
  return item_of(runtime_, object, evaluate(*node.index, scope));
}

Value Evaluator::value_of(const SliceNode& node, Scope& scope) {
  const Value object = evaluate(*node.object, scope);
  const auto bound = [&](const ExpressionPointer& expression) {
    return expression == nullptr ? Value(None{}) : evaluate(*expression, scope);
  };
  SliceBounds bounds;
  bounds.start = bound(node.start);
  bounds.stop = bound(node.stop);
  bounds.step = bound(node.step);
  return slice_of(runtime_, object, bounds);
}

Value Evaluator::value_of(const CallNode& node, Scope& scope) { return call(node, scope, nullptr); }

Value Evaluator::value_of(const FilterNode& node, Scope& scope) {
  const Value input = evaluate(*node.input, scope);
  return node.filter->apply(runtime_, input, arguments_of(node.arguments, scope));
}

Value Evaluator::value_of(const PredicateNode& node, Scope& scope) {
  const Value input = evaluate(*node.input, scope);
  return node.predicate->holds(runtime_, input, arguments_of(node.arguments, scope));
}

Arguments Evaluator::arguments_of(const CallArguments& arguments, Scope& scope) {
  Arguments values;
  for (const ExpressionPointer& argument : arguments.positional) {
    values.positional.push_back(evaluate(*argument, scope));
  }
  for (const auto& [name, argument] : arguments.named) {
    values.named.emplace_back(name, evaluate(*argument, scope));
  }
  if (arguments.unpacked_list != nullptr) {
    for (Value& value : elements_of(runtime_, evaluate(*arguments.unpacked_list, scope))) {
      values.positional.push_back(std::move(value));
    }
  }
  if (arguments.unpacked_dict != nullptr) {
    unpack(evaluate(*arguments.unpacked_dict, scope), values);
  }
  return values;
}

// The entries of a dictionary become arguments with names.
void Evaluator::unpack(const Value& value, Arguments& arguments) {
  const Dict* const dict = value.pointer<Dict>();
  if (dict == nullptr) runtime_.fail("'**' needs a dict, not a value of type {}", type_name(value));
  std::set<std::string_view> names;
  for (const auto& argument : arguments.named) names.insert(argument.first);
  runtime_.count_steps(dict->entries().size());
  for (const auto& [key, element] : dict->entries()) {
    const Text* const name = key.text();
    if (name == nullptr) runtime_.fail("the names of arguments must be strings");
    runtime_.count_read(name->size());
    if (names.contains(name->bytes())) {
      runtime_.fail("an argument '{}' is given twice", shortened(name->bytes()));
    }
  }
  for (const auto& [key, element] : dict->entries()) {
    arguments.named.emplace_back(std::string(key.text()->bytes()), element);
  }
}

Value Evaluator::call(const CallNode& node, Scope& scope, const Value* caller) {
  Arguments arguments = arguments_of(node.arguments, scope);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  if (const auto* attribute = std::get_if<AttributeNode>(&node.callee->node)) {
    return call_attribute(*attribute, arguments, scope);
  }
  return call_value(runtime_, evaluate(*node.callee, scope), arguments);
}

// A method is called at once, and one that Python may have, but this does not, is named.
Value Evaluator::call_attribute(const AttributeNode& callee, const Arguments& arguments,
                                Scope& scope) {
  const Value object = evaluate(*callee.object, scope);
  if (const Method* const method = find_method(object, callee.name)) {
    return method->call(runtime_, object, arguments);
  }
  const Value attribute = attribute_of(runtime_, object, callee.name);
  const bool has_methods = object.text() != nullptr || object.is_number() ||
                           object.pointer<List>() != nullptr || object.pointer<Dict>() != nullptr;
  if (attribute.is_undefined() && has_methods) {
    runtime_.fail_unsupported(fmt::format("the method '{}' of a value of type {}",
                                          shortened(callee.name), type_name(object)));
  }
  return call_value(runtime_, attribute, arguments);
}

}  // namespace heed::chat
