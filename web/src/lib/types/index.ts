// The server's JSON documents, by noun. Layers, heads, positions and neurons count from 0.

export type * from './attention';
export type * from './explanations';
export type * from './generation';
export type * from './meanings';
export type * from './models';
export type * from './plan';
export type * from './shape';
export type * from './tokens';
export type * from './traces';
export type * from './training';
