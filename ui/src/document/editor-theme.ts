/**
 * The theme of the editor. It uses the custom properties of tokens.css, which reach into its shadow root. Lint marks are
 * drawn as text, because CodeMirror's images are data: URLs.
 */
import { HighlightStyle } from '@codemirror/language';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

export const editorTheme = EditorView.theme({
  '&': { backgroundColor: 'var(--paper)', color: 'var(--ink)', height: '100%', fontSize: 'var(--size-text)' },
  // the frame around the editor shows the focus
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--face-mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--ink)', padding: 'var(--gap-2) 0' },
  '.cm-cursor, .cm-dropCursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', borderRight: '1px solid var(--line)', color: 'var(--ink-soft)' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--accent-soft) 35%, transparent)' },
  '.cm-activeLineGutter': { backgroundColor: 'var(--accent-soft)', color: 'var(--ink)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--accent-soft)',
  },
  '.cm-selectionMatch, .cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--timeout) 25%, transparent)' },
  '.cm-searchMatch-selected': { outline: '1px solid var(--timeout)' },
  '.cm-matchingBracket': { backgroundColor: 'var(--accent-soft)', outline: '1px solid var(--accent)' },
  '.cm-panels': { backgroundColor: 'var(--sunken)', color: 'var(--ink)', borderColor: 'var(--line)' },
  '.cm-panel.cm-search': { fontSize: 'var(--size-small)' },
  '.cm-panel.cm-search label': { fontSize: 'inherit' },
  '.cm-textfield, .cm-button': { fontSize: 'inherit' },
  '.cm-panels .cm-textfield': { backgroundColor: 'var(--paper)', borderColor: 'var(--line-strong)' },
  '.cm-panels .cm-button': {
    backgroundColor: 'var(--paper)',
    backgroundImage: 'none',
    borderColor: 'var(--line-strong)',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--paper)',
    border: '1px solid var(--line-strong)',
    borderRadius: 'var(--round)',
    boxShadow: 'var(--shadow)',
    color: 'var(--ink)',
    fontFamily: 'var(--face)',
    fontSize: 'var(--size-small)',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--accent-soft)',
    color: 'var(--ink)',
  },
  '.cm-completionInfo, .field-help': { maxWidth: '24rem', padding: 'var(--gap-2)', whiteSpace: 'pre-line' },
  '.cm-diagnostic': { borderLeft: '3px solid var(--failure)', padding: 'var(--gap-1) var(--gap-2)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--timeout)' },
  '.cm-lintRange': { backgroundImage: 'none', textDecoration: 'underline wavy var(--failure) 1px' },
  '.cm-lintRange-warning': { backgroundImage: 'none', textDecorationColor: 'var(--timeout)' },
  '.cm-gutter-lint .cm-gutterElement': { padding: '0 0.15rem' },
  '.cm-lint-marker, .cm-lint-marker-error, .cm-lint-marker-warning': { content: 'normal', lineHeight: 'inherit' },
  '.cm-lint-marker-error::before': { content: '"✕"', color: 'var(--failure)', fontWeight: '700' },
  '.cm-lint-marker-warning::before': {
    content: '"!"',
    color: 'var(--timeout)',
    fontWeight: '700',
    paddingLeft: '0.2em',
  },
});

export const editorColours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.content], color: 'var(--ink)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--running)' },
  { tag: [tags.comment, tags.lineComment], color: 'var(--ink-faint)', fontStyle: 'italic' },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: 'var(--ink-soft)' },
  { tag: [tags.keyword, tags.labelName, tags.typeName], color: 'var(--active)' },
]);
