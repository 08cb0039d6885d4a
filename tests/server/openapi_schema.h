// Whether JSON is as a schema of the OpenAPI document says.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace heed::server::testing {

// Knows the part of OpenAPI 3.0's schemas that the document uses: type, nullable, enum, properties,
// required, additionalProperties, items, minimum, maximum, minItems,
// maxItems, oneOf and $ref. Stricter in one way:
// fields that a schema does not name are faults, unless it has additionalProperties.
class SchemaChecker {
 public:
  // Borrows the document, into which $ref points.
  explicit SchemaChecker(const Json& document) : document_(document) {}

  // One line for whatever is not as it should be, beginning with its place in the value.
  std::vector<std::string> faults(const Json& value, const Json& schema) const;

  // What $ref stands for.
  const Json& resolved(const Json& schema) const;

 private:
  void check(const Json& value, const Json& reference, const std::string& place,
             std::vector<std::string>& faults) const;
  void check_object(const Json& value, const Json& schema, const std::string& place,
                    std::vector<std::string>& faults) const;
  void check_list(const Json& value, const Json& schema, const std::string& place,
                  std::vector<std::string>& faults) const;

  const Json& document_;
};

}  // namespace heed::server::testing
