import katex from 'katex';
import 'katex/dist/katex.min.css';

export function render(latex: string, displayMode: boolean): string {
  return katex.renderToString(latex, { displayMode, throwOnError: false, output: 'htmlAndMathml', strict: false });
}
