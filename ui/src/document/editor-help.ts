/** Help for writing a document: completion of fields, words and references, and descriptions of fields on hover. */
import {
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from '@codemirror/autocomplete';
import type { Extension } from '@codemirror/state';
import { hoverTooltip } from '@codemirror/view';
import { keyOf, type Schema, schemasAt, wayTo, wordsOf } from './schema.ts';

export function editorHelp(schema: () => Schema | undefined): Extension {
  return [
    autocompletion({ override: [(context) => complete(schema(), context)], icons: false }),
    hoverTooltip((view, at) => {
      const root = schema();
      const line = view.state.doc.lineAt(at);
      const key = keyOf(line.text);
      if (root === undefined || key === undefined) return null;
      const from = line.from + line.text.indexOf(key);
      if (at < from || at > from + key.length) return null;
      const way = wayTo(view.state.doc.toString().split('\n'), line.number - 1);
      const text = describe(schemasAt(root, [...way, key]));
      return text === ''
        ? null
        : { pos: from, end: from + key.length, above: true, create: () => ({ dom: help(text) }) };
    }),
  ];
}

function help(text: string): HTMLElement {
  const dom = document.createElement('div');
  dom.className = 'field-help';
  dom.textContent = text;
  return dom;
}

function describe(schemas: readonly Schema[]): string {
  const [schema] = schemas;
  const example = schema?.examples?.[0];
  const shown =
    example === undefined ? '' : `\nFor example: ${typeof example === 'string' ? example : JSON.stringify(example)}`;
  return schema?.description === undefined ? '' : `${schema.description}${shown}`;
}

const references = new Set(['depends', 'depends_failure', 'depends_done']);

function complete(root: Schema | undefined, context: CompletionContext): CompletionResult | null {
  if (root === undefined) return null;
  const { doc } = context.state;
  const line = doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  const lines = doc.toString().split('\n');
  const value = /^\s*(?:-\s+)*([\w-]+)\s*:\s*(.*)$/.exec(before);
  const way = wayTo(lines, line.number - 1, /^\s*$/.test(before) ? before.length : undefined);
  const field = value?.[1] ?? way.findLast((step) => step !== '-');
  const isItem = /^\s*-\s+[^:]*$/.test(before);
  if (field !== undefined && references.has(field) && (value !== null || isItem))
    return referenceResult(lines, context);
  if (value !== null) return wordResult(wordsOf(schemasAt(root, [...way, value[1] ?? ''])), context);
  return fieldResult(schemasAt(root, way), context);
}

function fieldResult(schemas: readonly Schema[], context: CompletionContext): CompletionResult | null {
  const typed = context.matchBefore(/[\w-]*$/);
  if (typed === null || (typed.from === typed.to && !context.explicit)) return null;
  const options = schemas.flatMap(({ properties = {} }) =>
    Object.entries(properties).map(([label, schema]): Completion => {
      const info = describe([schema]);
      return { label, apply: `${label}: `, ...(info === '' ? {} : { info }) };
    }),
  );
  // alternatives have fields in common
  const unique = [...new Map(options.map((option) => [option.label, option])).values()];
  return { from: typed.from, options: unique, validFor: /^[\w-]*$/ };
}

function wordResult(words: readonly string[], context: CompletionContext): CompletionResult | null {
  const typed = context.matchBefore(/\w*$/);
  if (typed === null || words.length === 0) return null;
  return { from: typed.from, options: words.map((label) => ({ label })), validFor: /^\w*$/ };
}

/** Completes references to the names under `triggers:` and `tasks:`. */
function referenceResult(lines: readonly string[], context: CompletionContext): CompletionResult | null {
  const typed = context.matchBefore(/[^\s[\],-][^[\],]*$|$/);
  if (typed === null) return null;
  const options = lines.flatMap((line, i): Completion[] => {
    const name = /^-?\s*name:\s*(["']?)(.+?)\1$/.exec(line.trim())?.[2];
    const [kind] = name === undefined ? [] : wayTo(lines, i);
    if (kind !== 'tasks' && kind !== 'triggers') return [];
    return [{ label: `${kind.slice(0, -1)}/${name}` }];
  });
  return { from: typed.from, options, validFor: /^[^[\],]*$/ };
}
