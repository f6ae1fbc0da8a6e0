/** One worker. */
export default function WorkerPage({ id }: { readonly id: string }) {
  return <h1>{id}</h1>;
}
