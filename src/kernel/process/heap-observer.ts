/**
 * Reports the used heap after each full garbage collection. Before a collection the number would include garbage.
 */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';

/** Returns a function that ends the observation. */
export function observeHeap(onCollected: (usedBytes: number) => void): () => void {
  const observer = new PerformanceObserver((list) => {
    if (list.getEntries().some(isFullCollection)) onCollected(getHeapStatistics().used_heap_size);
  });
  observer.observe({ entryTypes: ['gc'] });
  return () => observer.disconnect();
}

function isFullCollection(entry: PerformanceEntry): boolean {
  const detail: unknown = 'detail' in entry ? entry.detail : undefined;
  return (
    typeof detail === 'object' &&
    detail !== null &&
    'kind' in detail &&
    detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR
  );
}
