// What of the end-to-end tests needs a server of this machine, and so is not run on the static page: whole files, or
// single tests by their names.
const downloads = 'downloads into the cache of the machine; the page’s own downloads are in static.test.mjs';
const goesOn = 'a run goes on while the page is closed, or is another page’s; the page’s own are in static_training.test.mjs';

export const needServer = [
  { file: 'models.test.mjs', test: 'what the hub does wrong is said, and leaves no model', why: downloads },
  { file: 'models.test.mjs', test: 'a download is followed, cancelled and resumed, and its model follows the sentence', why: downloads },
  { file: 'models.test.mjs', test: 'where the server does not download, the buttons are off and say why', why: downloads },
  { file: 'training.test.mjs', test: 'a training is drawn from its first step, paused, resumed, slowed, stopped and started again', why: goesOn },
  { file: 'training.test.mjs', test: 'a second start in another tab is refused with a sentence, and the tab then shows the training', why: goesOn },
  { file: 'training.test.mjs', test: 'the running training has no serious findings and fits the window', why: goesOn },
  { file: 'watch.test.mjs', test: 'an open page notices that a run was stopped, and does not call it running without an answer', why: 'a process that trains, and a connection' },
  { file: 'watch.test.mjs', test: 'a running run is drawn while it writes its metrics', why: 'a process that trains' },
  { file: 'shell.test.mjs', test: 'a lost connection is reported, and the page continues once it is back', why: 'a connection' },
  { file: 'shell.test.mjs', test: 'an idle page notices a lost server and makes the trace again on its successor', why: 'a connection' },
];
