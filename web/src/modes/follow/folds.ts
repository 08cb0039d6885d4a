/** The context in which sections are folded on narrow screens. */
export const foldsParts = Symbol('folds');
