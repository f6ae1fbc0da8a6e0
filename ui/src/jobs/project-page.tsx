/** One project. */
export function ProjectPage({ id }: { readonly id: string }) {
  return <h1>{id}</h1>;
}
