// What heed.h says, with JavaScript's types: part of the module (--post-js).
{
  const encoder = new TextEncoder();

  // Calls function(pointer, length, ...) with copies of these texts or bytes, and frees them.
  const withBytes = (values, call) => {
    const pointers = [];
    const parameters = [];
    try {
      for (const value of values) {
        const bytes = value instanceof Uint8Array ? value : encoder.encode(value ?? '');
        const pointer = Module._malloc(bytes.length || 1) >>> 0;
        if (pointer === 0) throw new Error(`there is not enough memory for ${bytes.length} bytes`);
        pointers.push(pointer);
        HEAPU8.set(bytes, pointer);
        parameters.push(pointer, bytes.length);
      }
      return call(...parameters);
    } finally {
      pointers.forEach((pointer) => Module._free(pointer));
    }
  };

  // An exception of C++ that reaches JavaScript says nothing by itself: memory ran out, or a defect.
  const named = (call) => {
    try {
      return call();
    } catch (error) {
      if (typeof WebAssembly.Exception === 'function' && error instanceof WebAssembly.Exception) {
        throw new Error('heed failed: there is not enough memory, or this is a defect');
      }
      throw error;
    }
  };

  const must = (call) => {
    if (named(call)) throw new Error(UTF8ToString(Module._heed_error() >>> 0));
  };

  // Module.heedThreads: of a module with threads, how many are to compute.
  const threads = Module.heedThreads === undefined ? {} : { threads: Module.heedThreads };
  Module.heedOpen = (model, options = {}) => must(() => withBytes([model, JSON.stringify(Object.assign({}, threads, options))], Module._heed_open));
  Module.heedConvert = (model, out, options) => must(() => withBytes([model, out, JSON.stringify(options)], Module._heed_convert));
  Module.heedRequest = (id, method, target, headers = {}, body = '') => {
    const lines = JSON.stringify(headers instanceof Map ? Object.fromEntries(headers) : headers);
    named(() => withBytes([method, target, lines, body], (...parameters) => Module._heed_request(id, ...parameters)));
  };
  Module.heedStop = (id) => named(() => Module._heed_stop(id));
  Module.heedWork = () => named(() => Module._heed_work());
  Module.heedThreadCount = () => named(() => Module._heed_threads());
}
