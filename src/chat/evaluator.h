// Evaluates a parsed template.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "chat/syntax.h"
#include "chat/value.h"

namespace heed::chat {

class Evaluator {
 public:
  using Variables = std::map<std::string, Value, std::less<>>;

  // `globals` are the variables that a template is given.
  Evaluator(Runtime& runtime, Variables globals);

  Text render(const Block& block);

 private:
  // The variables of a template, a loop, a macro or a captured block; those around it are seen too.
  struct Scope {
    Variables variables;
    Scope* outer = nullptr;
  };
  enum class Flow { normal, broken, continued };

  Scope* new_scope(Scope* outer);

  Flow execute(const Block& block, Scope& scope);
  Flow run(const TextStatement& statement, Scope& scope);
  Flow run(const PrintStatement& statement, Scope& scope);
  Flow run(const IfStatement& statement, Scope& scope);
  Flow run(const ForStatement& statement, Scope& scope);
  Flow run(const SetStatement& statement, Scope& scope);
  Flow run(const SetBlockStatement& statement, Scope& scope);
  Flow run(const FilterStatement& statement, Scope& scope);
  Flow run(const WithStatement& statement, Scope& scope);
  Flow run(const MacroStatement& statement, Scope& scope);
  Flow run(const CallStatement& statement, Scope& scope);
  Flow run(const GenerationStatement& statement, Scope& scope);
  Flow run(const BreakStatement& statement, Scope& scope);
  Flow run(const ContinueStatement& statement, Scope& scope);

  std::vector<Value> loop_items(const ForStatement& statement, const Value& iterated, Scope& scope);
  Flow run_loop(const ForStatement& statement, const Value& iterated, Scope& scope, int depth);
  void assign(const Target& target, const Value& value, Scope& scope);
  template <class Printing>
  Text captured(Printing printing);
  Text capture(const Block& block, Scope& scope);
  Value filtered(const std::vector<AppliedFilter>& filters, Value value, Scope& scope);
  void print(const Text& text);
  Value macro(const MacroDefinition& definition, Scope& scope);
  Value call_macro(const MacroDefinition& definition, Scope& scope, const Arguments& given);
  void bind(const MacroDefinition& definition, Scope& scope, const Arguments& given);
  void bind_others(const MacroDefinition& definition, Scope& scope, const Arguments& given);

  Value evaluate(const Expression& expression, Scope& scope);
  Value value_of(const LiteralNode& node, Scope& scope);
  Value value_of(const NameNode& node, Scope& scope);
  Value value_of(const ListNode& node, Scope& scope);
  Value value_of(const DictNode& node, Scope& scope);
  Value value_of(const UnaryNode& node, Scope& scope);
  Value value_of(const BinaryNode& node, Scope& scope);
  Value value_of(const ComparisonNode& node, Scope& scope);
  Value value_of(const ConcatenationNode& node, Scope& scope);
  Value value_of(const ConditionalNode& node, Scope& scope);
  Value value_of(const AttributeNode& node, Scope& scope);
  Value value_of(const ItemNode& node, Scope& scope);
  Value value_of(const SliceNode& node, Scope& scope);
  Value value_of(const CallNode& node, Scope& scope);
  Value value_of(const FilterNode& node, Scope& scope);
  Value value_of(const PredicateNode& node, Scope& scope);

  Arguments arguments_of(const CallArguments& arguments, Scope& scope);
  void unpack(const Value& value, Arguments& arguments);
  Value call(const CallNode& node, Scope& scope, const Value* caller);
  Value call_attribute(const AttributeNode& callee, const Arguments& arguments, Scope& scope);
  Value look_up(const std::string& name, const Scope& scope);

  Runtime& runtime_;
  std::deque<Scope> scopes_;  // kept until the end, since macros refer to them
  Scope* root_ = nullptr;
  Text* output_ = nullptr;
};

}  // namespace heed::chat
