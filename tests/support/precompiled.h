// What most tests include, parsed once for all of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/precompiled.h"
