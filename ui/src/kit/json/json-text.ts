/** JSON as people type it: its value, or what is wrong with it and where. */
export type ParsedJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly fault: string };

export function parseJson(text: string): ParsedJson {
  try {
    return { ok: true, value: JSON.parse(text) as unknown };
  } catch {
    return { ok: false, fault: `Not valid JSON: ${placeOf(text, faultAt(text))}` };
  }
}

/** The same for text that must be an object; an empty text stands for one without members. */
export function parseObject(text: string): ParsedJson {
  if (text.trim() === '') return { ok: true, value: {} };
  const parsed = parseJson(text);
  if (!parsed.ok || isObject(parsed.value)) return parsed;
  return { ok: false, fault: 'Enter an object, such as {"amount": 12}' };
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function placeOf(text: string, at: number): string {
  if (at >= text.trimEnd().length) return 'it ends too early';
  const before = text.slice(0, at).split('\n');
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

const gap = /[ \t\n\r]*/y;
const scalar =
  // JSON does not allow control characters in texts
  // oxlint-disable-next-line no-control-regex
  /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** What may follow: a value, the end of a list or object that has begun, a name, a colon, or a comma or the end. */
type Expected = 'value' | 'first item' | 'first name' | 'name' | 'colon' | 'next';

/** The first character that does not belong there. Browsers agree on whether a text is JSON, but few of them say where it is not. */
function faultAt(text: string): number {
  const open: string[] = [];
  let expected: Expected = 'value';
  for (let at = skip(gap, text, 0); at < text.length; at = skip(gap, text, at)) {
    const sign = text[at] ?? '';
    const isEnd = sign === open.at(-1) && (expected === 'next' || expected.startsWith('first'));
    const takesValue: boolean = expected === 'value' || expected === 'first item';
    const end = skip(scalar, text, at);
    if (isEnd) {
      open.pop();
      expected = 'next';
    } else if (expected === 'next' && sign === ',' && open.length > 0) {
      expected = open.at(-1) === '}' ? 'name' : 'value';
    } else if (expected === 'colon' && sign === ':') {
      expected = 'value';
    } else if (takesValue && (sign === '{' || sign === '[')) {
      open.push(sign === '{' ? '}' : ']');
      expected = sign === '{' ? 'first name' : 'first item';
    } else if (end > at && (takesValue || (sign === '"' && expected.endsWith('name')))) {
      expected = takesValue ? 'next' : 'colon';
      at = end;
      continue;
    } else {
      return at;
    }
    at++;
  }
  return text.length;
}

/** Where the pattern ends that begins at this place; the place itself if it does not. */
function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
