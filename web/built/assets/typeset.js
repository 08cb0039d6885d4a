import{katex}from"./katex.js";function render(latex,displayMode){return katex.renderToString(latex,{displayMode,throwOnError:!1,output:"htmlAndMathml",strict:!1})}export{render};
