// Translation is Model::translate() of heed/heed.h; for programs that include this header.
#pragma once

#include "heed/heed.h"
