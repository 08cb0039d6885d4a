// llama.cpp as a rival of `heed bench --against`, by npm's node-llama-cpp: prints its tokens a second.
//   node llama_cpp.mjs MODEL.gguf prompt|decode TOKENS THREADS
// The median of three runs after one that is not timed. Node looks for the package beside this file.
import { getLlama } from "node-llama-cpp";

const [modelPath, work, count, threads] = [process.argv[2], process.argv[3], ...process.argv.slice(4).map(Number)];
const llama = await getLlama({ gpu: false, build: "never", logLevel: "error", maxThreads: threads });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 1024, batchSize: 512, threads });
const sequence = context.getSequence();
const prompt = Array.from({ length: work === "prompt" ? count : 1 }, (_, i) => (i * 7919) % 31000);

async function rate() {
  await sequence.clearHistory();
  let begin = performance.now();
  if (work === "prompt") {
    await sequence.evaluateWithoutGeneratingNewTokens(prompt);
  } else {
    let written = 0;
    for await (const token of sequence.evaluate(prompt, { temperature: 0 })) {
      if (written++ === 0) begin = performance.now();
      if (written > count) break;
    }
  }
  return (count / (performance.now() - begin)) * 1000;
}

const rates = [];
for (let run = 0; run < 4; ++run) rates.push(await rate());
console.log(rates.slice(1).sort((a, b) => a - b)[1]);
process.exit(0);
