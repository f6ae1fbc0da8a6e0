/**
 * The memory limits of a host, from `MILLRACE_HOST_MEMORY`.
 *
 * A host ends itself once its heap exceeds that setting. The limit at which Node aborts the process is twice as high, because
 * from about 85 % of it on the process is busy with garbage collection, and all its tenants are late. With a leak of 10 MB
 * every 100 ms, collections blocked the event loop for up to 2.4 s near that limit, and for less than 0.4 s at half of it
 * (one run on a quiet machine).
 */
export interface HostMemory {
  /** The limit of the heap after garbage collection, in bytes. */
  readonly heapLimit: number;
  /** The limit of resident memory, in bytes. Besides its heap a process has code, buffers and garbage. */
  readonly memoryLimit: number;
  /** The size of the heap at which Node aborts the process, in MiB. */
  readonly abortAtMb: number;
}

export function hostMemory(memoryMb: number): HostMemory {
  const bytes = memoryMb * 2 ** 20;
  return { heapLimit: bytes, memoryLimit: bytes * 1.5, abortAtMb: memoryMb * 2 };
}
