/** In the navigation: how many work items wait for the user. */
import './my-workitems.css';
import { maxCounted, useMyCount } from './use-workitems.ts';

export function MyWorkitems() {
  const count = useMyCount() ?? 0;
  if (count === 0) return null;
  const words = count > maxCounted ? `${maxCounted}+` : String(count);
  return (
    <span
      className="place-count"
      title={count === 1 ? '1 work item waits for you' : `${words} work items wait for you`}
    >
      {words}
      <span className="unseen"> work items wait for you</span>
    </span>
  );
}
