// Prints the version of heed that this program was built with, and a name that comes out of the
// library, to see that both were found.
#include "heed/version.h"

#include <iostream>

#include "heed/error.h"

int main() {
  std::cout << "heed " << heed::version << ", " << heed::error_code_name(heed::ErrorCode::not_found)
            << '\n';
}
