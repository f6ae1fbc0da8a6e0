/** Work of kind `none`: a task without a runtime block. It takes no place in a worker and succeeds at once. */
import { emptyView, type KindOfWork } from '../work.ts';

export const none: KindOfWork<'none', { readonly kind: 'none' }> = {
  kind: 'none',
  isLocal: false,
  hasVariables: false,
  expand: () => ({ kind: 'none' }),
  view: () => emptyView,
  remedy: (flags) => `start one: millrace worker${flags}`,
};
