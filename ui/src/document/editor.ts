/**
 * The editor itself, without React: CodeMirror in a shadow root. There it adds its styles as constructed style sheets. In
 * the page it would add a style element, which the content security policy forbids.
 */
import { closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
import { search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { editorHelp } from './editor-help.ts';
import { editorColours, editorTheme } from './editor-theme.ts';
import type { PlacedFault } from './fault-places.ts';
import type { Schema } from './schema.ts';

export interface EditorOptions {
  readonly label: string;
  readonly text: string;
  readonly isReadOnly: boolean;
  readonly schema: () => Schema | undefined;
  readonly changed: (text: string) => void;
  readonly save: () => void;
}

export interface Editor {
  readonly show: (text: string) => void;
  readonly mark: (faults: readonly PlacedFault[], warnings: readonly PlacedFault[]) => void;
  /** Moves the cursor there and focuses the editor. */
  readonly goTo: (at: number) => void;
  readonly destroy: () => void;
}

export function openEditor(host: HTMLElement, options: EditorOptions): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const view = new EditorView({ root, parent: root, state: stateOf(options) });
  return {
    show: (text) => {
      const { doc } = view.state;
      if (doc.toString() !== text) view.dispatch({ changes: { from: 0, to: doc.length, insert: text } });
    },
    mark: (faults, warnings) => {
      const { length } = view.state.doc;
      const found = [...faults.map((f) => diagnostic(f, 'error')), ...warnings.map((w) => diagnostic(w, 'warning'))];
      // the text may have become shorter while the server checked it
      view.dispatch(
        setDiagnostics(
          view.state,
          found.filter(({ to }) => to <= length),
        ),
      );
    },
    goTo: (at) => {
      const anchor = Math.min(at, view.state.doc.length);
      view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
      view.focus();
    },
    destroy: () => view.destroy(),
  };
}

function diagnostic({ from, to, message }: PlacedFault, severity: 'error' | 'warning'): Diagnostic {
  return { from, to, severity, message };
}

function stateOf({ label, text, isReadOnly, schema, changed, save }: EditorOptions): EditorState {
  const shared: Extension = [
    lineNumbers(),
    drawSelection(),
    yaml(),
    syntaxHighlighting(editorColours),
    editorTheme,
    search({ top: true }),
    keymap.of(searchKeymap),
    EditorView.lineWrapping,
  ];
  const writing: Extension = [
    lintGutter(),
    history(),
    indentUnit.of('  '),
    bracketMatching(),
    closeBrackets(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    editorHelp(schema),
    // editable content has the focus anyway; the attribute tells accessibility tools
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
    EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
    keymap.of([
      { key: 'Mod-s', preventDefault: true, run: () => (save(), true) },
      ...closeBracketsKeymap,
      ...completionKeymap,
      ...lintKeymap,
      ...historyKeymap,
      ...defaultKeymap,
      indentWithTab,
    ]),
  ];
  const reading: Extension = [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    // without a tabindex, read-only content could not be reached or scrolled with the keyboard
    EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0', 'aria-readonly': 'true' }),
  ];
  return EditorState.create({ doc: text, extensions: [shared, isReadOnly ? reading : writing] });
}
