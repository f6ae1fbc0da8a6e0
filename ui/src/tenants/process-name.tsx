/** A process as people find it again: its machine and number. */
import type { Process } from './use-tenants.ts';

export function ProcessName({ of }: { readonly of: Pick<Process, 'id' | 'machine' | 'pid'> | null }) {
  if (of === null) return <span className="muted">–</span>;
  return (
    <span className="process-name" title={of.id}>
      <span className="process-machine" title={of.machine}>
        {of.machine}
      </span>{' '}
      <span className="muted">pid {of.pid}</span>
    </span>
  );
}
