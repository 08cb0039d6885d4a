// What of the end-to-end tests needs a server of this machine, and so is not run on the static page: whole files, or
// single tests by their names.
export const needServer = [
  { file: 'models.test.mjs', why: 'downloads into the cache of the machine' },
  { file: 'training.test.mjs', why: 'a run goes on while the page is closed, and is kept on disk' },
  { file: 'watch.test.mjs', why: 'runs on disk' },
  { file: 'families.test.mjs', why: 'other models than those that come with the page' },
  { file: 'ids.test.mjs', why: 'a model without a tokenizer' },
  { file: 'translate.test.mjs', why: 'a translator' },
  { file: 'beams.test.mjs', why: 'a translator' },
];
