/** The definition of a step, from the document that the execution follows. */
import { lazy, Suspense } from 'react';
import { useDocument } from '../use-executions.ts';

interface Props {
  readonly execution: string;
  readonly rev: number;
  readonly path: string;
}

const SourceText = lazy(() => import('./source-text.tsx'));

export function StepSource({ execution, rev, path }: Props) {
  const { data: document } = useDocument(execution, rev);
  // what cannot be read here is told by the page around it
  if (document === undefined) return null;
  return (
    <section aria-label="Definition">
      <h3>Definition</h3>
      <Suspense fallback={null}>
        <SourceText document={document} path={path} />
      </Suspense>
    </section>
  );
}
