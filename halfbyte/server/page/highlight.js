// Colours for code: comments, strings, numbers and words a language keeps for itself. A guess by lexical rules that
// most languages share, in one pass; what it gets wrong is a colour.

const C_LIKE = { line: "//", block: true, quotes: "\"'" };
const words = (text) => new Set(text.split(" "));
const JS = words("async await break case catch class const continue default delete do else export extends false finally for from function get if import in instanceof interface let new null of return set static super switch this throw true try type typeof undefined var void while yield");
const C = words("auto bool break case char class const constexpr continue default delete do double else enum extern false float for goto if include inline int long namespace new nullptr operator private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while");
const PYTHON = words("False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield");
const RUST = words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while");
const GO = words("break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var");
const JAVA = words("abstract boolean break byte case catch char class const continue default do double else enum extends false final finally float for fun if implements import in instanceof int interface is long new null object override package private protected public return short static super switch synchronized this throw throws true try val var void when while");
const SHELL = words("case do done elif else esac export fi for function if in local return set then until while");
const SQL = words("add all alter and as asc between by case create delete desc distinct drop else end exists from group having in index inner insert into is join key left like limit not null on or order outer primary select set table then union update values view when where with");
const RUBY = words("alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield");
const DATA = words("false null true none yes no");

const LANGUAGES = {
  python: { line: "#", quotes: "\"'", triple: true, words: PYTHON },
  javascript: { ...C_LIKE, quotes: "\"'`", words: JS },
  c: { ...C_LIKE, words: C },
  rust: { ...C_LIKE, quotes: '"', words: RUST },
  go: { ...C_LIKE, quotes: "\"'`", words: GO },
  java: { ...C_LIKE, words: JAVA },
  shell: { line: "#", quotes: "\"'", words: SHELL },
  sql: { line: "--", block: true, quotes: "'", words: SQL, anyCase: true },
  ruby: { line: "#", quotes: "\"'", words: RUBY },
  json: { quotes: '"', words: DATA },
  yaml: { line: "#", quotes: "\"'", words: DATA },
  css: { block: true, quotes: "\"'", words: new Set() },
};
const NAMES = {
  py: "python", python3: "python", js: "javascript", jsx: "javascript", ts: "javascript", tsx: "javascript",
  typescript: "javascript", "c++": "c", cpp: "c", cc: "c", h: "c", hpp: "c", cs: "java", csharp: "java", kotlin: "java",
  kt: "java", swift: "java", scala: "java", dart: "java", php: "java", rs: "rust", golang: "go", sh: "shell", bash: "shell",
  zsh: "shell", console: "shell", dockerfile: "shell", make: "shell", rb: "ruby", yml: "yaml", toml: "yaml", ini: "yaml",
  jsonc: "javascript", json5: "javascript", scss: "css", postgresql: "sql", mysql: "sql", sqlite: "sql",
};
const LONGEST = 200_000; // beyond this colours cost more than they give
const WORD = /[A-Za-z_][\w]*/y;
const NUMBER = /(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)/y;
const SPACE_OR_MARK = /[^\w"'`#/\-]+/y;

/** Runs [kind, from, to] that together are the whole source; a kind of "" has no colour. */
export function highlight(source, language) {
  const name = language.toLowerCase();
  const rules = LANGUAGES[Object.hasOwn(NAMES, name) ? NAMES[name] : name];
  if (!Object.hasOwn(LANGUAGES, NAMES[name] ?? name) || source.length > LONGEST) return [["", 0, source.length]];
  const runs = [];
  let at = 0;
  while (at < source.length) {
    const [kind, end] = readRun(source, at, rules);
    const last = runs.at(-1);
    if (last && last[0] === kind && !kind) last[2] = end;
    else runs.push([kind, at, end]);
    at = end;
  }
  return runs;
}

function readRun(source, at, rules) {
  if (rules.line && source.startsWith(rules.line, at)) return ["comment", endOf(source, "\n", at, 0)];
  if (rules.block && source.startsWith("/*", at)) return ["comment", endOf(source, "*/", at + 2, 2)];
  if (rules.quotes.includes(source[at])) return ["string", stringEnd(source, at, rules)];
  const word = match(WORD, source, at);
  if (word) return [rules.words.has(rules.anyCase ? word.toLowerCase() : word) ? "word" : "", at + word.length];
  const number = match(NUMBER, source, at);
  if (number) return ["number", at + number.length];
  return ["", at + Math.max(match(SPACE_OR_MARK, source, at).length, 1)];
}

function match(pattern, source, at) {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? "";
}

function endOf(source, mark, from, length) {
  const end = source.indexOf(mark, from);
  return end < 0 ? source.length : end + length;
}

/** Strings end with their line, save those in backticks and in three quotes. */
function stringEnd(source, at, { triple }) {
  const quote = source[at];
  const three = quote.repeat(3);
  if (triple && source.startsWith(three, at)) return endOf(source, three, at + 3, 3);
  for (let i = at + 1; i < source.length; i++) {
    if (source[i] === "\\") i++;
    else if (source[i] === quote) return i + 1;
    else if (source[i] === "\n" && quote !== "`") return i;
  }
  return source.length;
}
