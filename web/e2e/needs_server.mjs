// What of the end-to-end tests needs a server of this machine, and so is not run on the static page: whole files, or
// single tests by their names.
const requests = 'holds up, changes or counts the requests to a server; of the worker’s messages unit tests do the same (src/static/engine.test.ts)';

export const needServer = [
  { file: 'models.test.mjs', why: 'downloads into the cache of the machine; the page’s own downloads are in static.test.mjs' },
  { file: 'training.test.mjs', why: 'a run goes on while the page is closed, and is kept on disk' },
  { file: 'watch.test.mjs', why: 'runs on disk' },
  { file: 'translate.test.mjs', why: 'a translator' },
  { file: 'beams.test.mjs', why: 'a translator' },
  { file: 'by_word.test.mjs', test: 'a head that the link, the example or the user names stays; it is picked again on request', why: requests },
  { file: 'by_word.test.mjs', test: 'while edges are cut the rest is shown, and another text stops it', why: requests },
  { file: 'change.test.mjs', test: 'changes beyond the end of a shorter text are marked and not sent', why: requests },
  { file: 'mends.test.mjs', test: 'nothing is said of a former word while the numbers of the chosen one are on their way', why: requests },
  { file: 'mends.test.mjs', test: 'another text of as many tokens does not take the former one’s attention', why: requests },
  { file: 'mends.test.mjs', test: 'what a model has read is said where it is known, and nothing is claimed elsewhere', why: requests },
  { file: 'shell.test.mjs', test: 'a lost connection is reported, and the page continues once it is back', why: 'a connection' },
  { file: 'shell.test.mjs', test: 'an idle page notices a lost server and makes the trace again on its successor', why: 'a connection' },
  { file: 'whole.test.mjs', test: 'weights come in few answers and equal the factors of the computations', why: requests },
];
