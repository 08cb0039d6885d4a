// One file from servers that break off, lie and change their minds.
#include "download/download_file.h"

#include <gmock/gmock.h>

#include <future>

#include "download/download_support.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::HubAnswer;
using testing::HubRequest;
using testing::HubServer;

class DownloadFile : public testing::DownloadTest {
 protected:
  // Answers the requests for the file; the number counts them from 0.
  void script(std::function<std::optional<HubAnswer>(const HubRequest&, int)> answer) {
    server_.set_script([this, answer](const HubRequest& request, int number) {
      return request.is_for(name_) ? answer(request, number) : std::nullopt;
    });
  }
  std::vector<HubRequest> requests() const { return server_.requests_for(name_); }

  // The download fails, and nothing of it is left.
  template <class... Parts>
  void expect_refused(const Parts&... parts) {
    expect_error(
        ErrorCode::corrupt_data, [&] { download(); }, parts...);
    EXPECT_EQ(downloaded(), std::nullopt);
    EXPECT_EQ(directory_.entries(), 0U);
  }
};

TEST_F(DownloadFile, IsWhole) {
  download();
  EXPECT_EQ(downloaded(), content_);
  EXPECT_EQ(requests().size(), 1U);
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(DownloadFile, MayBeEmpty) {
  server_.set_file(name_, "");
  download();
  EXPECT_EQ(downloaded(), "");
}

TEST_F(DownloadFile, ContinuesWhereTheConnectionWasDropped) {
  script([&](const HubRequest& request, int number) -> std::optional<HubAnswer> {
    if (number < 2) return HubServer::cut(whole(request), 150'000);
    return std::nullopt;
  });
  download();
  EXPECT_EQ(downloaded(), content_);
  const std::vector<HubRequest> sent = requests();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].header("range"), "");
  EXPECT_EQ(sent[1].header("range"), "bytes=150000-");
  EXPECT_EQ(sent[2].header("range"), "bytes=300000-");
  EXPECT_EQ(sent[2].header("if-range"), HubServer::etag_of(content_));
  EXPECT_THAT(pauses_, ::testing::ElementsAre(Milliseconds(500), Milliseconds(1000)));
}

TEST_F(DownloadFile, ContinuesWhatAnEarlierProcessLeft) {
  script([&](const HubRequest& request, int) {
    return HubServer::cut(whole(request), request.header("range").empty() ? 100'000 : 0);
  });
  expect_error(
      ErrorCode::input_output, [&] { download(); }, name_, "6 tries");
  EXPECT_EQ(downloaded(), content_.substr(0, 100'000));
  server_.set_script(nullptr);
  server_.forget_requests();
  download();
  EXPECT_EQ(downloaded(), content_);
  ASSERT_EQ(requests().size(), 1U);
  EXPECT_EQ(requests()[0].header("range"), "bytes=100000-");
  EXPECT_EQ(requests()[0].header("if-range"), HubServer::etag_of(content_));

  // What is whole is asked for no more.
  server_.forget_requests();
  download();
  EXPECT_TRUE(requests().empty());
}

TEST_F(DownloadFile, BeginsAgainWithoutAVersionToContinue) {
  for (const std::string& etag : {std::string(""), std::string("ETag: W/\"weak\"\r\n")}) {
    server_.forget_requests();
    script([&](const HubRequest&, int number) -> std::optional<HubAnswer> {
      const std::string part = number == 0 ? content_.substr(0, 1000) : content_;
      return HubAnswer{
          testing::http_reply("200 OK", etag + testing::content_length(content_.size()), part)};
    });
    download();
    EXPECT_EQ(downloaded(), content_);
    ASSERT_EQ(requests().size(), 2U);
    EXPECT_EQ(requests()[1].header("range"), "");
    std::filesystem::remove(partial_path(directory_ / name_));
  }
}

TEST_F(DownloadFile, RefusesLengthsThatAreNotTheFiles) {
  for (const std::size_t length : {content_.size() - 1, content_.size() + 1, std::size_t{0}}) {
    script([&](const HubRequest&, int) {
      return HubAnswer{testing::http_reply("200 OK", testing::content_length(length), content_)};
    });
    expect_refused(std::to_string(length), std::to_string(content_.size()));
  }
}

TEST_F(DownloadFile, RefusesMoreBytesThanAnnounced) {
  script([&](const HubRequest&, int) {
    return HubAnswer{testing::http_reply("200 OK", "", content_ + "more")};
  });
  expect_refused("more than the 400000 bytes");
}

TEST_F(DownloadFile, AsksAgainForWhatEndsEarlyWithoutALength) {
  script([&](const HubRequest&, int number) {
    return HubAnswer{
        testing::http_reply("200 OK", "", number == 0 ? content_.substr(0, 10) : content_)};
  });
  download();
  EXPECT_EQ(downloaded(), content_);
  EXPECT_EQ(requests().size(), 2U);
}

TEST_F(DownloadFile, RefusesAnotherFileOnceItHasTriedTwice) {
  std::string other = content_;
  other[123'456] ^= 1;
  script([&](const HubRequest& request, int) { return HubServer::file_answer(request, other); });
  expect_refused("sha256", HubServer::sibling(name_, content_)["lfs"]["sha256"].get<std::string>());
  EXPECT_EQ(requests().size(), 2U);

  // A damaged transfer is mended by the second.
  server_.forget_requests();
  script([&](const HubRequest& request, int number) {
    return HubServer::file_answer(request, number == 0 ? other : content_);
  });
  download();
  EXPECT_EQ(downloaded(), content_);
}

TEST_F(DownloadFile, NoticesThatTheFileChangesBetweenTries) {
  const std::string other(content_.size(), 'o');
  // If-Range: the server sends all of its new version. It has the wrong hash; then the old is back.
  script([&](const HubRequest& request, int number) {
    if (number == 0) return HubServer::cut(whole(request), 100'000);
    return HubServer::file_answer(request, number == 1 ? other : content_);
  });
  download();
  EXPECT_EQ(downloaded(), content_);
  EXPECT_EQ(requests().size(), 3U);

  // A server that ignores If-Range continues with the other version, and says so.
  std::filesystem::remove(partial_path(directory_ / name_));
  pauses_.clear();
  server_.forget_requests();
  script([&](const HubRequest& request, int number) -> std::optional<HubAnswer> {
    if (number == 0) return HubServer::cut(whole(request), 100'000);
    if (number > 1) return std::nullopt;
    HubRequest without = request;
    without.headers.erase("if-range");
    return HubServer::file_answer(without, other);
  });
  download();
  EXPECT_EQ(downloaded(), content_);
  ASSERT_EQ(requests().size(), 3U);
  EXPECT_EQ(requests()[2].header("range"), "");
  EXPECT_EQ(pauses_.size(), 2U) << "noticed by the ETag, not by the hash of the whole";

  // A version that stays another is refused.
  std::filesystem::remove(partial_path(directory_ / name_));
  server_.forget_requests();
  script([&](const HubRequest& request, int number) {
    if (number == 0) return HubServer::cut(whole(request), 100'000);
    return HubServer::file_answer(request, other);
  });
  expect_refused("sha256");
}

TEST_F(DownloadFile, RefusesRangesThatWereNotAskedFor) {
  for (const std::string& range : {std::string("Content-Range: bytes 0-399999/400000\r\n"),
                                   std::string("Content-Range: bytes 100000-399999/500000\r\n"),
                                   std::string("Content-Range: bytes x\r\n"), std::string()}) {
    server_.forget_requests();
    script([&](const HubRequest& request, int number) -> std::optional<HubAnswer> {
      if (number == 0) return HubServer::cut(whole(request), 100'000);
      return HubAnswer{testing::http_reply("206 Partial Content",
                                           range + testing::content_length(300'000),
                                           content_.substr(100'000))};
    });
    expect_refused("the server sends");
  }
}

TEST_F(DownloadFile, BeginsAgainWhereTheServerHasNoSuchBytes) {
  script([&](const HubRequest& request, int number) -> std::optional<HubAnswer> {
    if (number == 0) return HubServer::cut(whole(request), 100'000);
    if (number == 1) return HubAnswer{testing::http_reply("416 Range Not Satisfiable", "", "")};
    return std::nullopt;
  });
  download();
  EXPECT_EQ(downloaded(), content_);
  EXPECT_EQ(requests().size(), 3U);
}

TEST_F(DownloadFile, WaitsAsLongAsTheServerAsks) {
  script([&](const HubRequest&, int number) -> std::optional<HubAnswer> {
    if (number == 0) {
      return HubAnswer{testing::http_reply("429 Too Many Requests", "Retry-After: 7\r\n", "slow")};
    }
    if (number == 1) return HubAnswer{testing::http_reply("503 Service Unavailable", "", "")};
    if (number == 2) return HubAnswer{testing::http_reply("500 Internal Server Error", "", "")};
    return std::nullopt;
  });
  download();
  EXPECT_EQ(downloaded(), content_);
  EXPECT_THAT(pauses_,
              ::testing::ElementsAre(Milliseconds(7000), Milliseconds(1000), Milliseconds(2000)));
}

TEST_F(DownloadFile, DoesNotWaitForHours) {
  script([&](const HubRequest&, int) {
    return HubAnswer{testing::http_reply("429 Too Many Requests", "Retry-After: 7200\r\n", "")};
  });
  expect_error(
      ErrorCode::input_output, [&] { download(); }, "429", "7200 seconds");
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(DownloadFile, GivesUpAfterSomeTries) {
  script([&](const HubRequest&, int) {
    return HubAnswer{testing::http_reply("503 Service Unavailable", "", "")};
  });
  expect_error(
      ErrorCode::input_output, [&] { download(); }, "503", "6 tries");
  EXPECT_EQ(requests().size(), 6U);
  server_.forget_requests();
  script([&](const HubRequest&, int) {
    return HubAnswer{testing::http_reply("418 I'm a teapot", "", "")};
  });
  expect_error(
      ErrorCode::input_output, [&] { download(); }, "418");
  EXPECT_EQ(requests().size(), 1U);
}

TEST_F(DownloadFile, StopsWithinASecondAndKeepsWhatItHas) {
  script([&](const HubRequest& request, int) {
    HubAnswer answer = HubServer::cut(whole(request), 100'000);
    answer.hold = true;
    return answer;
  });
  auto done = std::async(std::launch::async, [&] {
    expect_error(ErrorCode::interrupted, [&] { download(); });
    return std::chrono::steady_clock::now();
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (downloaded().value_or("").size() < 100'000 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(Milliseconds(5));
  }
  const auto asked = std::chrono::steady_clock::now();
  stop_ = true;
  EXPECT_LT(done.get() - asked, std::chrono::seconds(1));
  EXPECT_EQ(downloaded(), content_.substr(0, 100'000));
}

TEST_F(DownloadFile, NeedsSpaceOnTheDisk) {
  server_.set_script([&](const HubRequest& request, int) -> std::optional<HubAnswer> {
    if (request.is_for(name_)) return std::nullopt;
    OrderedJson listing = server_.listing();
    listing["siblings"][0]["size"] = listing["siblings"][0]["lfs"]["size"] = 1LL << 44;
    return HubServer::json_answer(listing);
  });
  expect_error(
      ErrorCode::input_output, [&] { download(); }, std::to_string(1LL << 44), "free");
  EXPECT_TRUE(requests().empty());
}

TEST_F(DownloadFile, ReportsItsProgress) {
  std::vector<Progress> reports;
  HubOptions reporting = options();
  reporting.progress = [&](const Progress& progress) { reports.push_back(progress); };
  download(reporting);
  ASSERT_GE(reports.size(), 3U);
  EXPECT_EQ(reports[1].what, "downloading " + name_);
  EXPECT_EQ(reports[1].total, std::ssize(content_));
  EXPECT_EQ(reports.back().what, "verifying " + name_);
  EXPECT_EQ(reports.back().done, std::ssize(content_));
}

}  // namespace
}  // namespace heed
