/** The editor as a component. `change` reports typed text; a different `text` from outside replaces the content. */
import { type Ref, useEffect, useEffectEvent, useImperativeHandle, useRef } from 'react';
import { type Editor, openEditor } from './editor.ts';
import type { PlacedFault } from './fault-places.ts';
import type { Schema } from './schema.ts';

export interface CodeEditorHandle {
  readonly goTo: (at: number) => void;
}

interface Props {
  readonly label: string;
  readonly text: string;
  readonly isReadOnly: boolean;
  readonly faults: readonly PlacedFault[];
  readonly warnings: readonly PlacedFault[];
  readonly schema: Schema | undefined;
  readonly change: (text: string) => void;
  readonly save: () => void;
  readonly ref?: Ref<CodeEditorHandle>;
}

export function CodeEditor({ label, text, isReadOnly, faults, warnings, schema, change, save, ref }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(undefined);
  const current = useEffectEvent(() => ({ text, schema, faults, warnings }));
  // typed text that has not come back as `text` yet: on a busy page more is typed before it does, and must not be undone
  const reported = useRef<readonly string[]>([]);
  const handleChange = useEffectEvent((next: string) => {
    if (next === text) return;
    reported.current = [...reported.current, next];
    change(next);
  });
  const handleSave = useEffectEvent(() => save());
  useEffect(() => {
    const { current: element } = host;
    if (element === null) return undefined;
    const opened = openEditor(element, {
      label,
      text: current().text,
      isReadOnly,
      schema: () => current().schema,
      changed: (next) => handleChange(next),
      save: () => handleSave(),
    });
    opened.mark(current().faults, current().warnings);
    editor.current = opened;
    return () => {
      opened.destroy();
      editor.current = undefined;
    };
  }, [label, isReadOnly]);
  useEffect(() => {
    const at = reported.current.lastIndexOf(text);
    reported.current = at === -1 ? [] : reported.current.slice(at + 1);
    if (at === -1) editor.current?.show(text);
  }, [text]);
  useEffect(() => editor.current?.mark(faults, warnings), [faults, warnings]);
  useImperativeHandle(ref, () => ({ goTo: (at) => editor.current?.goTo(at) }), []);
  return <div ref={host} className="code-editor" />;
}
