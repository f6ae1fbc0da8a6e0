/** What saving a document of a flow does. */
import { Diff } from '../document/diff.tsx';
import type { AppliedFlow } from './use-flow-check.ts';

interface Props {
  readonly answer: AppliedFlow;
  readonly before: string;
  readonly after: string;
  /** The document has the name of another flow. */
  readonly isOther: boolean;
}

export function FlowPreview({ answer: { name, version, changed }, before, after, isOther }: Props) {
  if (!changed) return null;
  return (
    <section className="dry-run" aria-label="What saving does">
      <h2>{isOther ? `The flow ${name}, version ${version}` : `Version ${version}`}</h2>
      <p className="note">
        {isOther
          ? 'This is the name of another flow: this one stays as it is.'
          : 'Executions that begin from now on follow it. Those under way keep theirs.'}
      </p>
      {isOther ? null : <Diff before={before} after={after} isSideBySide={false} />}
    </section>
  );
}
