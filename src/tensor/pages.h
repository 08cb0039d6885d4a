// Reserved addresses by the views that lie in them.
#pragma once

#include "tensor/view.h"

namespace heed {

// commit_memory() of the pages that a view's elements lie in.
void commit_pages_of(View<float> view);

}  // namespace heed
