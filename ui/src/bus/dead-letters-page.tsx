/** Dead letters of all subscribers. */
import { useTitle } from '../kit/title.ts';
import { BusHead } from './bus-head.tsx';
import { DeadLetters } from './dead-letters.tsx';

export default function DeadLettersPage() {
  useTitle('Dead letters');
  return (
    <>
      <BusHead />
      <DeadLetters />
    </>
  );
}
