/** Runs pieces of asynchronous work one after the other, in the order in which they came. */

/** A piece of work begins once the piece before it is over, whether or not that succeeded. */
export function makeSerial(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => {});
    return mine;
  };
}
