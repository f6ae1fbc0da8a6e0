/** What somebody types, once they have stopped for a moment: for questions that are not worth asking at every stroke. */
import { useEffect, useState } from 'react';

export function useSettled<T>(value: T, waitMs: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), waitMs);
    return () => clearTimeout(timer);
  }, [value, waitMs]);
  return settled;
}
