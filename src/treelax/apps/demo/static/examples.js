// Texts to begin with, each of which shows something else. Where no arc is named, the server chooses one.

export const EXAMPLES = [
  {
    name: "Who has the telescope?",
    about: "One word, two heads: I saw with it, or the man has it.",
    source: "english",
    text: "I saw the man with the telescope .",
    arc: "2-7",
  },
  {
    name: "Garden path",
    about: "The old (people) man (operate) the boats: most readers, and parsers, take man for a noun.",
    source: "english",
    text: "The old man the boats .",
  },
  {
    name: "Nested list",
    about: "A model that learned trees from argument counts alone.",
    source: "listops",
    text: "[MAX 2 9 [MIN 4 [SM 7 3 ] ] 0 ]",
  },
  {
    name: "Tie",
    about: "All scores are 0: every tree is as good as any other, and noise alone decides.",
    source: "zero",
    text: "all these trees are equally good",
    arc: "4-6",
  },
  {
    name: "Long sentence",
    about: "Turn the noise down and see which arcs stay uncertain.",
    source: "english",
    text:
      "The committee that met in Geneva last week said on Friday that it would publish the report on " +
      "prices of food and fuel in poor countries before the end of May .",
  },
  {
    name: "Binary tree",
    about: "Spans in place of arcs, with random scores.",
    source: "random",
    structure: "binary",
    text: "the old cat watched a small bird",
  },
];

// What a source begins with.
export const exampleOf = (source) =>
  EXAMPLES.find((each) => each.source === source.name && !each.structure) ?? {
    name: "Its own example",
    source: source.name,
    text: source.examples[0],
    second: source.examples[1],
  };

// Those of the sources that there are, that of a run first.
export const examplesOf = (info) => [
  ...info.sources.filter((each) => each.name === "run").map(exampleOf),
  ...EXAMPLES.filter((each) => info.sources.some((source) => source.name === each.source)),
];
