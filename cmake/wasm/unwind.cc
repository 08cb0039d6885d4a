// What code with exceptions and threads asks of libunwind, for compilers that keep the landing
// pad's context in one place for all threads (Clang 14), where the library has one for each: a
// catch of a type would never match. Code then has to catch by type in one thread at a time: parts
// of loops let through what they throw (base/thread_pool.h).
#include <unwind.h>

#include <cstdint>

namespace {

// What a landing pad says, and is told.
struct LandingPad {
  std::uintptr_t index;
  std::uintptr_t handlers;  // the table of its function
  std::uintptr_t selected;  // the handler
};

LandingPad& landing_pad(_Unwind_Context* context) {
  return *reinterpret_cast<LandingPad*>(context);
}

}  // namespace

extern "C" {

LandingPad __wasm_lpad_context;

_Unwind_Reason_Code __gxx_personality_wasm0(int version, _Unwind_Action actions, std::uint64_t kind,
                                            _Unwind_Exception* exception, _Unwind_Context* context);

// Of a landing pad, which has written its index and its handlers.
_Unwind_Reason_Code _Unwind_CallPersonality(void* thrown) {
  auto* const exception = static_cast<_Unwind_Exception*>(thrown);
  __wasm_lpad_context.selected = 0;
  return __gxx_personality_wasm0(1, _UA_CLEANUP_PHASE, exception->exception_class, exception,
                                 reinterpret_cast<_Unwind_Context*>(&__wasm_lpad_context));
}

_Unwind_Reason_Code _Unwind_RaiseException(_Unwind_Exception* exception) {
  __builtin_wasm_throw(0, exception);
}

void _Unwind_DeleteException(_Unwind_Exception* exception) {
  if (exception->exception_cleanup != nullptr)
    exception->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, exception);
}

void _Unwind_SetGR(_Unwind_Context* context, int place, _Unwind_Word value) {
  if (place == 1) landing_pad(context).selected = value;
}

// The personality subtracts one, and counts landing pads from one.
_Unwind_Word _Unwind_GetIP(_Unwind_Context* context) { return landing_pad(context).index + 2; }
void _Unwind_SetIP(_Unwind_Context*, _Unwind_Word) {}

void* _Unwind_GetLanguageSpecificData(_Unwind_Context* context) {
  return reinterpret_cast<void*>(landing_pad(context).handlers);
}
_Unwind_Ptr _Unwind_GetRegionStart(_Unwind_Context*) { return 0; }

}  // extern "C"
