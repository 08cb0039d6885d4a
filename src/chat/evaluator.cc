// Statements; expressions.cc has the expressions.
#include "chat/evaluator.h"

#include "chat/built_in.h"
#include "chat/operators.h"
#include "chat/print.h"

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
  output_->append(text);
  runtime_.count_steps(text.size() / 256);
  if (output_->size() > runtime_.limits().output_bytes) runtime_.count_bytes(output_->size());
}

// What a block prints.
Text Evaluator::capture(const Block& block, Scope& scope) {
  Text captured;
  Text* const outer = std::exchange(output_, &captured);
  execute(block, scope);
  output_ = outer;
  return captured;
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
std::vector<Value> Evaluator::loop_items(const ForStatement& statement, Scope& scope) {
  std::vector<Value> items = elements_of(runtime_, evaluate(*statement.iterated, scope));
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
  std::vector<Value> items = loop_items(statement, scope);
  if (items.empty()) return execute(statement.otherwise, *new_scope(&scope));
  Scope* const inner = new_scope(&scope);
  Loop* const loop = runtime_.new_loop();
  loop->items = std::move(items);
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
    names->attributes.set(runtime_.text(target.attribute), value);
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
  for (const SetBlockStatement::Applied& applied : statement.filters) {
    value = applied.filter->apply(runtime_, value, arguments_of(applied.arguments, scope));
  }
  assign(statement.target, value, scope);
  return Flow::normal;
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
  if (given.positional.size() > parameters.size()) {
    runtime_.fail("the macro '{}' takes {} arguments, not {}", shortened(definition.name),
                  parameters.size(), given.positional.size());
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i) {
    scope.variables.insert_or_assign(parameters[i].name, given.positional[i]);
  }
  for (const auto& [name, value] : given.named) {
    bool known = name == "caller";
    for (const Parameter& parameter : parameters) known = known || parameter.name == name;
    if (!known) {
      runtime_.fail("the macro '{}' has no argument '{}'", shortened(definition.name),
                    shortened(name));
    }
    if (!scope.variables.emplace(name, value).second) {
      runtime_.fail("the macro '{}' is given '{}' twice", shortened(definition.name),
                    shortened(name));
    }
  }
  for (const Parameter& parameter : parameters) {
    if (scope.variables.contains(parameter.name)) continue;
    Value value = parameter.default_value == nullptr
                      ? Value::undefined(fmt::format("'{}'", shortened(parameter.name)))
                      : evaluate(*parameter.default_value, scope);
    scope.variables.emplace(parameter.name, std::move(value));
  }
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

}  // namespace heed::chat
