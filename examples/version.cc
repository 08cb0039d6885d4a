// Prints the version of heed and a string from the library, to check headers and linking.
#include "heed/version.h"

#include <iostream>

#include "heed/error.h"

int main() {
  std::cout << "heed " << heed::version << ", " << heed::error_code_name(heed::ErrorCode::not_found)
            << '\n';
}
