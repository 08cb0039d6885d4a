"""The layer check sees every kind of breach, and nothing else."""

import unittest

from check_test_case import CheckTestCase


class CheckLayers(CheckTestCase):
    script = "check_layers.py"

    def test_lower_floors_and_own_folder_are_allowed(self):
        self.assert_clean("src/model/block.cc",
                          '#include "model/block.h"\n#include <vector>\n'
                          '#include "kernels/kernels.h"\n#include "base/error.h"\n'
                          '#include "heed/error.h"\n#include <fmt/format.h>\n')

    def test_higher_floor(self):
        self.assert_breach("src/base/error.cc", '\n\n#include "model/block.h"\n',
                           "src/base/error.cc:3: includes model/block.h", "above")

    def test_same_floor(self):
        self.assert_breach("src/train/a.cc", '#include "generate/a.h"\n', ":1:", "beside")
        self.assert_breach("src/kernels/cpu/a.cc", '#include "tokenizer/a.h"\n', "beside")

    def test_angle_brackets_and_spaces_do_not_hide_a_breach(self):
        self.assert_breach("src/base/a.h", "#include <model/block.h>\n", "above")
        self.assert_breach("src/base/a.h", '  #  include "model/block.h"\n', "above")

    def test_unknown_folders(self):
        self.assert_breach("src/misc/a.cc", "#include <vector>\n", "src/misc")
        self.assert_breach("src/model/a.cc", '#include "misc/a.h"\n', "'misc'")
        self.assert_breach("src/model/a.cc", '#include "../base/error.h"\n', "'..'")
        self.assert_breach("src/model/a.cc", '#include "block.h"\n', "with their folder")

    def test_one_face_starts_another_by_its_door_alone(self):
        self.assert_clean("src/cli/a.cc", '#include "server/serve.h"\n')
        self.assert_breach("src/cli/a.cc", '#include "server/router.h"\n', "beside")
        self.assert_breach("src/server/a.cc", '#include "cli/command.h"\n', "beside")

    def test_confined_libraries(self):
        for header in ("hwy/highway.h", "hwy/foreach_target.h"):
            self.assert_clean("src/kernels/cpu/a.cc", f"#include <{header}>\n")
            self.assert_clean("src/kernels/cpu/a.cc", f'#include "{header}"\n')
            self.assert_breach("src/kernels/reference/a.cc", f"#include <{header}>\n", header)
            self.assert_breach("src/model/a.cc", f'#include "{header}"\n', "only in")
            self.assert_breach("include/heed/a.h", f"#include <{header}>\n", "only in")

    def test_the_servers_libraries(self):
        self.assert_clean("src/server/a.cc", "#include <boost/beast/http/parser.hpp>\n")
        self.assert_breach("src/engine/a.cc", "#include <boost/asio.hpp>\n", "only in src/server")
        self.assert_breach("src/server/a.cc", "#include <httplib.h>\n", "only in tests")

    def test_the_libraries_of_downloads_and_hashes(self):
        for header, folder in (("curl/curl.h", "src/download"), ("openssl/evp.h", "src/base")):
            self.assert_clean(f"{folder}/a.cc", f"#include <{header}>\n")
            self.assert_breach("src/engine/a.cc", f"#include <{header}>\n", f"only in {folder}")

    def test_the_python_module(self):
        self.assert_clean("python/src/model.cc", '#include <pybind11/numpy.h>\n'
                          '#include "heed/heed.h"\n#include "bindings.h"\n')
        self.assert_breach("python/src/model.cc", '#include "model/transformer.h"\n', "installed headers")
        self.assert_breach("src/cli/main.cc", "#include <pybind11/numpy.h>\n", "python/src")

    def test_installed_headers(self):
        self.assert_clean("include/heed/a.h", '#include "heed/error.h"\n#include <string>\n')
        self.assert_breach("include/heed/a.h", '#include "base/error.h"\n', "installed headers")
        self.assert_breach("include/heed/a.h", "#include <base/error.h>\n", "installed headers")

    def test_the_repository_is_clean(self):
        self.assert_repository_is_clean()


if __name__ == "__main__":
    unittest.main()
