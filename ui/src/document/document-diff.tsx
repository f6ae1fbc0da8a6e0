/** The difference between two documents, as YAML. A module of its own, because only this view needs the YAML library. */
import { useMemo } from 'react';
import { yamlOf } from './document-text.ts';
import { Diff } from './diff.tsx';

interface Props {
  /** Undefined: there was none. */
  readonly before: unknown;
  readonly after: unknown;
  readonly isSideBySide: boolean;
}

export default function DocumentDiff({ before, after, isSideBySide }: Props) {
  const [left, right] = useMemo(() => [textOf(before), textOf(after)], [before, after]);
  return <Diff before={left} after={right} isSideBySide={isSideBySide} />;
}

function textOf(document: unknown): string {
  return document === undefined ? '' : yamlOf(document);
}
