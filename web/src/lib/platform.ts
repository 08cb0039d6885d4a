// The server that the page comes from answers. The build of static files has src/static/platform.ts in place of this file.

import type { Platform } from './platform_types';

export const platform: Platform = {
  isServer: true,
  fetch: (path, options) => fetch(path, options),
  choose: async (model) => model || undefined,
  models: null,
  ownModels: null,
  onNotice: () => undefined,
};
