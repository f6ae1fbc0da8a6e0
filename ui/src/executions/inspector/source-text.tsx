/** A part of a document as YAML. A module of its own, because only this needs the YAML library. */
import { useMemo } from 'react';
import { yamlOf } from '../../document/document-text.ts';
import { valueAt } from '../actions/patch-draft.ts';

export default function SourceText({ document, path }: { readonly document: unknown; readonly path: string }) {
  const text = useMemo(() => yamlOf(valueAt(document, path) ?? null), [document, path]);
  return (
    <pre className="step-source" tabIndex={0} role="region" aria-label="Definition as YAML">
      {text}
    </pre>
  );
}
