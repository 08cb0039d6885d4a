// NumPy's .npz: an uncompressed zip archive of .npy files.
#pragma once

#include <span>

#include "base/files.h"
#include "microscope/files/array_files.h"

namespace heed {

// The caller commits the file. Members have zip64 sizes, so that arrays may be larger than 4 GiB
// (PKWARE, .ZIP File Format Specification 6.3; NumPy Enhancement Proposal 1).
void write_npz(AtomicFile& file, std::span<const NamedArray> arrays, const ArrayNotes& notes);

}  // namespace heed
