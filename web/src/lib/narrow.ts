// Screens on which long views are folded.

import { MediaQuery } from 'svelte/reactivity';

export const narrow = new MediaQuery('max-width: 640px');
