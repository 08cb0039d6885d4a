import { mount } from 'svelte';
import '../app.css';
import App from '../App.svelte';
import './static.css';
import { connection } from '../lib/connection.svelte';
import { models } from '../lib/models.svelte';
import { messageOf } from '../lib/state.svelte';
import { keepOffline } from './app';
import { watchDrops } from './drop';
import { embedOf } from './embed';
import { library, ready } from './platform';

const target = document.getElementById('app')!;
const embed = embedOf(location.search);
if (embed) {
  void import('./Embed.svelte').then(({ default: Embed }) => mount(Embed, { target, props: { embed } }));
} else {
  mount(App, { target });
  watchDrops((files) => {
    library.add(files).then((name) => models.use(name), (error) => (connection.notice = messageOf(error)));
  });
  void keepOffline(ready(), (message) => (connection.notice = message));
}
