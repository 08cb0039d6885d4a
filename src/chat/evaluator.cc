#include "chat/evaluator.h"

#include <algorithm>
#include <set>
#include <utility>

#include "chat/built_in.h"
#include "chat/operators.h"
#include "chat/value.h"

namespace heed::chat {

Evaluator::Evaluator(Runtime& runtime, Variables globals) : runtime_(runtime) {
  Scope* const given = new_scope(nullptr);
  given->variables = std::move(globals);
  root_ = new_scope(given);
}

Text Evaluator::render(const Block& block) { return capture(block, *root_); }

Evaluator::Scope* Evaluator::new_scope(Scope* outer) {
  runtime_.count_steps(1);
  return &scopes_.emplace_back(Scope{{}, outer});
}

Evaluator::Flow Evaluator::execute(const Block& block, Scope& scope) {
  const Nesting nesting(runtime_);
  for (const Statement& statement : block) {
    runtime_.set_line(statement.line);
    runtime_.count_steps(1);
    const Flow flow =
        std::visit([&](const auto& node) { return run(node, scope); }, statement.node);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

void Evaluator::print(const Text& text) {
  runtime_.count_read(text.size());
  output_->append(text);
  runtime_.require_text_size(output_->size());
}

// What `printing` prints.
template <class Printing>
Text Evaluator::captured(Printing printing) {
  Text text;
  Text* const outer = std::exchange(output_, &text);
  printing();
  output_ = outer;
  return text;
}

Text Evaluator::capture(const Block& block, Scope& scope) {
  return captured([&] { execute(block, scope); });
}

Evaluator::Flow Evaluator::run(const TextStatement& statement, Scope&) {
  print(*statement.text.text());
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const PrintStatement& statement, Scope& scope) {
  const Value value = evaluate(*statement.value, scope);
  if (const Text* text = value.text()) {
    print(*text);
  } else {
    print(to_text(runtime_, value));
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const IfStatement& statement, Scope& scope) {
  for (const IfStatement::Branch& branch : statement.branches) {
    if (truth(evaluate(*branch.test, scope))) return execute(branch.body, scope);
  }
  return execute(statement.otherwise, scope);
}

// All elements, or those for which the condition holds.
std::vector<Value> Evaluator::loop_items(const ForStatement& statement, const Value& iterated,
                                         Scope& scope) {
  std::vector<Value> items = elements_of(runtime_, iterated);
  if (statement.condition == nullptr) return items;
  Scope* const inner = new_scope(&scope);
  std::vector<Value> chosen;
  for (Value& item : items) {
    assign(statement.target, item, *inner);
    if (truth(evaluate(*statement.condition, *inner))) chosen.push_back(std::move(item));
  }
  return chosen;
}

Evaluator::Flow Evaluator::run(const ForStatement& statement, Scope& scope) {
  return run_loop(statement, evaluate(*statement.iterated, scope), scope, 0);
}

Evaluator::Flow Evaluator::run_loop(const ForStatement& statement, const Value& iterated,
                                    Scope& scope, int depth) {
  std::vector<Value> items = loop_items(statement, iterated, scope);
  if (items.empty()) return execute(statement.otherwise, *new_scope(&scope));
  Scope* const inner = new_scope(&scope);
  Loop* const loop = runtime_.new_loop();
  loop->items = std::move(items);
  loop->depth = depth;
  if (statement.is_recursive) {
    loop->recurse = [this, &statement, &scope, depth](const Value& inner_items) {
      const Nesting nesting(runtime_);
      return runtime_.text(captured([&] { run_loop(statement, inner_items, scope, depth + 1); }));
    };
  }
  bool finished = false;  // a round, without `break` or `continue`
  for (std::size_t i = 0; i < loop->items.size(); ++i) {
    loop->index = i;
    inner->variables.clear();  // what a body sets is gone in the next round
    inner->variables.emplace("loop", loop);
    assign(statement.target, loop->items[i], *inner);
    const Flow flow = execute(statement.body, *inner);
    if (flow == Flow::broken) break;
    finished = finished || flow == Flow::normal;
  }
  // As in Jinja, `else` follows not only a loop without elements.
  return finished ? Flow::normal : execute(statement.otherwise, *new_scope(&scope));
}

void Evaluator::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.attribute.empty()) {
    const Value object = look_up(target.names[0], scope);
    Namespace* const names = object.pointer<Namespace>();
    if (names == nullptr) {
      runtime_.fail("only attributes of a namespace can be set, and '{}' is none",
                    shortened(target.names[0]));
    }
    names->attributes.set(runtime_, runtime_.text(target.attribute), value);
    return;
  }
  if (!target.is_tuple) {
    scope.variables.insert_or_assign(target.names[0], value);
    return;
  }
  const std::vector<Value> elements = elements_of(runtime_, value);
  if (elements.size() != target.names.size()) {
    runtime_.fail("{} values cannot be assigned to {} variables", elements.size(),
                  target.names.size());
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    scope.variables.insert_or_assign(target.names[i], elements[i]);
  }
}

Evaluator::Flow Evaluator::run(const SetStatement& statement, Scope& scope) {
  assign(statement.target, evaluate(*statement.value, scope), scope);
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const SetBlockStatement& statement, Scope& scope) {
  Value value = runtime_.text(capture(statement.body, *new_scope(&scope)));
  assign(statement.target, filtered(statement.filters, std::move(value), scope), scope);
  return Flow::normal;
}

Value Evaluator::filtered(const std::vector<AppliedFilter>& filters, Value value, Scope& scope) {
  for (const AppliedFilter& applied : filters) {
    value = applied.filter->apply(runtime_, value, arguments_of(applied.arguments, scope));
  }
  return value;
}

Evaluator::Flow Evaluator::run(const FilterStatement& statement, Scope& scope) {
  Flow flow = Flow::normal;
  Text text = captured([&] { flow = execute(statement.body, *new_scope(&scope)); });
  if (flow != Flow::normal) return flow;  // `break` keeps what was printed
  const Value result = filtered(statement.filters, runtime_.text(std::move(text)), scope);
  if (result.text() == nullptr) {
    runtime_.fail("a filter block gives a string, not a value of type {}", type_name(result));
  }
  print(*result.text());
  return Flow::normal;
}

// Values are those outside: in `with a = 1, b = a` the second is not the first.
Evaluator::Flow Evaluator::run(const WithStatement& statement, Scope& scope) {
  Scope* const inner = new_scope(&scope);
  for (const SetStatement& assignment : statement.assignments) {
    assign(assignment.target, evaluate(*assignment.value, scope), *inner);
  }
  return execute(statement.body, *inner);
}

Value Evaluator::macro(const MacroDefinition& definition, Scope& scope) {
  return runtime_.new_callable(definition.name,
                               [this, &definition, &scope](const Arguments& given) {
                                 return call_macro(definition, scope, given);
                               });
}

Value Evaluator::call_macro(const MacroDefinition& definition, Scope& scope,
                            const Arguments& given) {
  const Nesting nesting(runtime_);
  const int line = runtime_.place().line;
  Scope* const inner = new_scope(&scope);
  bind(definition, *inner, given);
  Value result = runtime_.text(capture(definition.body, *inner));
  runtime_.set_line(line);
  return result;
}

// The parameters of a macro become variables; those not given have their default, or are undefined.
void Evaluator::bind(const MacroDefinition& definition, Scope& scope, const Arguments& given) {
  const auto& parameters = definition.parameters;
  runtime_.count_steps(parameters.size() + given.positional.size() + given.named.size());
  for (std::size_t i = 0; i < std::min(given.positional.size(), parameters.size()); ++i) {
    scope.variables.insert_or_assign(parameters[i].name, given.positional[i]);
  }
  for (const auto& [name, value] : given.named) {
    if (!definition.parameter_names.contains(name)) continue;
    if (!scope.variables.emplace(name, value).second) {
      runtime_.fail("the macro '{}' is given '{}' twice", shortened(definition.name),
                    shortened(name));
    }
  }
  bind_others(definition, scope, given);
  for (const Parameter& parameter : parameters) {
    if (scope.variables.contains(parameter.name)) continue;
    Value value = parameter.default_value == nullptr
                      ? Value::undefined(fmt::format("'{}'", shortened(parameter.name)))
                      : evaluate(*parameter.default_value, scope);
    scope.variables.emplace(parameter.name, std::move(value));
  }
}

// Arguments without a parameter: `caller`, `varargs` and `kwargs`, of macros that use them.
void Evaluator::bind_others(const MacroDefinition& definition, Scope& scope,
                            const Arguments& given) {
  const std::size_t taken = std::min(given.positional.size(), definition.parameters.size());
  std::vector<Value> rest(given.positional.begin() + static_cast<std::ptrdiff_t>(taken),
                          given.positional.end());
  if (!definition.uses_varargs && !rest.empty()) {
    runtime_.fail("the macro '{}' takes {} arguments, not {}", shortened(definition.name),
                  definition.parameters.size(), given.positional.size());
  }
  Dict* const others = definition.uses_kwargs ? runtime_.new_dict() : nullptr;
  for (const auto& [name, value] : given.named) {
    if (definition.parameter_names.contains(name)) continue;
    if (definition.uses_caller && name == "caller") {
      scope.variables.emplace(name, value);
    } else if (others != nullptr) {
      others->set(runtime_, runtime_.text(name), value);
    } else {
      runtime_.fail("the macro '{}' has no argument '{}'", shortened(definition.name),
                    shortened(name));
    }
  }
  if (definition.uses_varargs) {
    scope.variables.emplace("varargs", runtime_.new_list(std::move(rest), ListKind::tuple));
  }
  if (others != nullptr) scope.variables.emplace("kwargs", others);
}

Evaluator::Flow Evaluator::run(const MacroStatement& statement, Scope& scope) {
  scope.variables.insert_or_assign(statement.macro.name, macro(statement.macro, scope));
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const CallStatement& statement, Scope& scope) {
  const Value caller = macro(statement.caller, scope);
  const Value result = call(std::get<CallNode>(statement.call->node), scope, &caller);
  print(to_text(runtime_, result));
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const GenerationStatement& statement, Scope& scope) {
  return execute(statement.body, *new_scope(&scope));
}

Evaluator::Flow Evaluator::run(const BreakStatement&, Scope&) { return Flow::broken; }

Evaluator::Flow Evaluator::run(const ContinueStatement&, Scope&) { return Flow::continued; }

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
