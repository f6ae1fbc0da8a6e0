/** An address at which there is nothing. */
import { Link } from 'wouter';
import { Empty } from './empty.tsx';
import { useTitle } from './title.ts';

export function NotFound() {
  useTitle('Not found');
  return (
    <Empty title="There is no such page">
      <p>
        The address may be mistyped. <Link href="/jobs">All jobs</Link> are a good place to go on from.
      </p>
    </Empty>
  );
}
