// Answers a completion request: submits its sequences and writes their choices, whole or streamed.
#pragma once

#include <memory>
#include <string>

#include "server/completion_request.h"
#include "server/context.h"
#include "server/reply_format.h"

namespace heed::server {

// `route` labels the time to first token. Waits for the first tokens, so that an error before them
// determines the status of the reply.
Reply run_completion(CompletionRequest request, std::unique_ptr<const ReplyFormat> format,
                     Context& context, const char* route);

}  // namespace heed::server
