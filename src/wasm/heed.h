// The engine as WebAssembly: what a page's worker calls instead of a server.
//
// The module (build/wasm/heed.js, an ES module whose default export makes an instance) is called
// from one thread: every call returns when its work is done, and nothing happens between calls.
// src/wasm/heed_api.js puts JavaScript's types around the functions below:
//
//   const module = await createHeed({
//     // Once a reply begins; headersJson: [["Name", "value"], …]
//     heedHead(id, status, headersJson) {},
//     // A Uint8Array, valid during the call alone: copy it. Returns false to end the reply.
//     heedChunk(id, bytes) {},
//     // error: "" or why the reply ended early
//     heedEnd(id, error) {},
//     // Of a module with threads (build/wasm-threads): how many compute, with the caller's.
//     heedThreads: 4,
//   });
//   module.heedOpen("starter", {dtype: "f32"});  // throws Error; see heed_open
//   module.heedRequest(id, "POST", "/api/traces", {"content-type": "application/json"}, body);
//   module.heedStop(id);
//   module.heedWork();                     // see heed_work
//   module.heedThreadCount();              // see heed_threads
//
// Files are MEMFS's (module.FS, module.WORKERFS): the model NAME is the folder /models/NAME with
// the files of a model's directory: config.json, model.safetensors, tokenizer.json and, of the
// models that heed carries, examples.json and reading.json. A page writes them there before it
// opens or names the model, or mounts dropped files there by WORKERFS. The training run that heed
// carries is /models/recorded; it is shown where it is there when a model is opened. What a page
// trains is kept below /runs.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Opens the model of this name, or of a folder ("/models/gpt2"), instead of the one before, and
// makes the routes of `heed explore`; all earlier requests end. `options` is a JSON object, or
// empty:
// {"dtype": "f32" | "bf16" | "int8"…} as --dtype, for weights that the files hold in full, {"name":
// what replies call the model}, {"threads": N}, heedThreads by default. Returns 0, or 1 where it
// cannot be opened: heed_error() says why, and the model before stays open.
int heed_open(const char* model, std::size_t model_length, const char* options,
              std::size_t options_length);

// Writes a model in another format of weights to the folder `out`, as `heed convert` does; nothing
// has to be open. `options` is a JSON object: {"dtype": "int8"…, "embedding": true, "compute_f32":
// true} as the command's, and {"claims": […]}: examples.json is measured of what was written, and a
// claim that no longer holds is an error, as by `heed microworld examples`. Returns as heed_open.
int heed_convert(const char* model, std::size_t model_length, const char* out,
                 std::size_t out_length, const char* options, std::size_t options_length);

// Why the last heed_open or heed_convert failed; UTF-8 that ends with a zero byte.
const char* heed_error();

// Answers a request by Module.heedHead, heedChunk and heedEnd. A reply in one piece has ended when
// this returns. A reply that comes bit by bit (text/event-stream) has begun: heed_work() goes on
// with it. `id` is the caller's, of no other reply that goes on.
void heed_request(std::uint32_t id, const char* method, std::size_t method_length,
                  const char* target, std::size_t target_length, const char* headers_json,
                  std::size_t headers_length, const char* body, std::size_t body_length);

// Ends a reply that goes on; heedEnd is called. Does nothing for another id.
void heed_stop(std::uint32_t id);

// Does the next piece of what waits: a token of a text, a step of a training run, a look for new
// lines of a run. Returns the milliseconds until it wants to be called again; −1: nothing waits,
// call it again after the next request.
int heed_work();

// How many threads compute at the same time: each of them holds a part of one loop until all of
// them do, or, where one does not come, for two seconds. As many as were asked for, with the
// caller's; fewer: the others cannot start.
int heed_threads();

}  // extern "C"
