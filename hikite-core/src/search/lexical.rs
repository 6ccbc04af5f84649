//! BM25F: how well the words of a question fit a tool, the fields of the tool weighed against each other before the
//! words of all fields count together. What a word gives to a tool is worked out when the index is built, so a
//! question only adds up the lists of its own words.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::document::Document;
use super::word::{Reader, Stems, Word, hash};

/// How much more the tenth mention of a word says than the first.
const K1: f32 = 1.2;

/// A field's bit, its weight, and how much its length counts against it.
struct Field {
    weight: f32,
    length: f32,
}

const FIELDS: usize = 6;
/// In the order of `fields`.
const WEIGHTS: [Field; FIELDS] = [
    Field { weight: 3.0, length: 0.5 },
    Field { weight: 1.5, length: 0.5 },
    Field { weight: 1.0, length: 0.75 },
    Field { weight: 0.6, length: 0.75 },
    Field { weight: 0.3, length: 0.75 },
    Field { weight: 0.2, length: 0.75 },
];
pub(super) const NAME: u8 = 1;
pub(super) const MODULE: u8 = 1 << 1;
pub(super) const DESCRIPTION: u8 = 1 << 2;

fn each_field<'a>(document: &'a Document, mut read: impl FnMut(usize, &'a str)) {
    read(0, &document.name);
    read(1, &document.module);
    read(2, &document.description);
    for (name, description) in &document.parameters {
        read(3, name);
        read(4, description);
    }
    read(5, &document.module_text);
}

/// For every word the documents that hold it, in flat arrays.
#[derive(Debug, Default)]
pub(super) struct Lexical {
    terms: Table<u32>,
    /// Where the list of a term begins; one more at the end.
    starts: Vec<u32>,
    documents: Vec<u32>,
    /// What the term gives to the document.
    gains: Vec<f32>,
    /// The fields it stands in, as bits.
    fields: Vec<u8>,
    /// How much a term says at all, by how few documents hold it.
    rarities: Vec<f32>,
    /// How much a word says that no document holds.
    unheard: f32,
}

/// The list of one word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Postings<'a> {
    pub(super) documents: &'a [u32],
    pub(super) gains: &'a [f32],
    fields: &'a [u8],
}

impl Lexical {
    pub(super) fn build(documents: &[Document]) -> Self {
        let mut counter = Counter::default();
        let mut reader = Reader::default();
        for document in documents {
            counter.read(document, &mut reader);
        }
        counter.finish()
    }

    pub(super) fn postings(&self, term: u64) -> Option<Postings<'_>> {
        let at = *self.terms.get(&term)? as usize;
        let range = self.starts[at] as usize..self.starts[at + 1] as usize;
        Some(Postings {
            documents: &self.documents[range.clone()],
            gains: &self.gains[range.clone()],
            fields: &self.fields[range],
        })
    }

    /// What a word gives to one document, and the bits of the fields that hold it.
    pub(super) fn gain_of(&self, term: u64, document: usize) -> (f32, u8) {
        let place = |postings: &Postings<'_>| {
            let document = u32::try_from(document).ok()?;
            postings.documents.binary_search(&document).ok()
        };
        let found = self.postings(term).and_then(|postings| Some((place(&postings)?, postings)));
        found.map_or((0.0, 0), |(at, postings)| (postings.gains[at], postings.fields[at]))
    }

    /// How much a word says at all, by how few documents hold it; most if none does.
    pub(super) fn rarity(&self, term: u64) -> f32 {
        self.terms.get(&term).map_or(self.unheard, |at| self.rarities[*at as usize])
    }

    /// What a word gives to a document at most.
    pub(super) fn most(&self, term: u64) -> f32 {
        self.rarity(term) * (K1 + 1.0)
    }
}

/// One term in one document: how often in each field.
struct Count {
    term: u32,
    fields: [u8; FIELDS],
}

/// Reads documents one after the other; weights can be told only once all lengths are known.
struct Counter {
    stems: Stems,
    /// Terms by the hash of a word before it is reduced to its stem: stems are worked out once per word.
    seen: Table<Option<u32>>,
    terms: Table<u32>,
    /// Per term, one more than the place in `counts` where it was counted last.
    last: Vec<u32>,
    holders: Vec<u32>,
    counts: Vec<Count>,
    /// Where the counts of each document end, and how long its fields are.
    ends: Vec<u32>,
    lengths: Vec<[u16; FIELDS]>,
}

impl Default for Counter {
    fn default() -> Self {
        Self {
            stems: Stems::new(),
            seen: Table::default(),
            terms: Table::default(),
            last: Vec::new(),
            holders: Vec::new(),
            counts: Vec::new(),
            ends: Vec::new(),
            lengths: Vec::new(),
        }
    }
}

impl Counter {
    fn read(&mut self, document: &Document, reader: &mut Reader) {
        let first = self.counts.len();
        let mut lengths = [0_u16; FIELDS];
        each_field(document, |field, text| {
            reader.words(text, |word| {
                if let Some(term) = self.term(word, field == 0) {
                    lengths[field] = lengths[field].saturating_add(1);
                    self.count(term, field, first);
                }
            });
        });
        self.ends.push(small(self.counts.len()));
        self.lengths.push(lengths);
    }

    /// The number of a word's term. Stop words count in names alone: some tools are called nothing else.
    fn term(&mut self, word: Word<'_>, in_name: bool) -> Option<u32> {
        let known = hash(word.text);
        let seen = match self.seen.get(&known) {
            Some(seen) => *seen,
            None => {
                let seen = (!word.is_stop()).then(|| self.number(word));
                self.seen.insert(known, seen);
                seen
            }
        };
        seen.or_else(|| in_name.then(|| self.number(word)))
    }

    fn number(&mut self, word: Word<'_>) -> u32 {
        *self.terms.entry(self.stems.term(word)).or_insert_with(|| {
            self.last.push(0);
            self.holders.push(0);
            small(self.last.len() - 1)
        })
    }

    fn count(&mut self, term: u32, field: usize, first: usize) {
        let last = &mut self.last[term as usize];
        let place = *last as usize;
        if place <= first {
            self.holders[term as usize] += 1;
            self.counts.push(Count { term, fields: [0; FIELDS] });
            *last = small(self.counts.len());
        }
        let count = &mut self.counts[self.last[term as usize] as usize - 1].fields[field];
        *count = count.saturating_add(1);
    }

    fn finish(self) -> Lexical {
        let rarities: Vec<f32> = self.holders.iter().map(|held| rarity(self.ends.len(), *held)).collect();
        let mut starts = Vec::with_capacity(self.holders.len() + 1);
        starts.push(0);
        let mut end = 0;
        starts.extend(self.holders.iter().map(|held| {
            end += held;
            end
        }));
        let mut free = starts.clone();
        let total = self.counts.len();
        let (mut documents, mut gains, mut fields) = (vec![0; total], vec![0.0; total], vec![0; total]);
        let averages = averages(&self.lengths);
        let mut begin = 0;
        for (document, (end, lengths)) in self.ends.iter().zip(&self.lengths).enumerate() {
            let scales = scales(lengths, &averages);
            for count in &self.counts[begin..*end as usize] {
                let place = free[count.term as usize] as usize;
                free[count.term as usize] += 1;
                let (often, bits) = often(count, &scales);
                documents[place] = small(document);
                gains[place] = rarities[count.term as usize] * often * (K1 + 1.0) / (often + K1);
                fields[place] = bits;
            }
            begin = *end as usize;
        }
        let unheard = rarity(self.ends.len(), 0);
        Lexical { terms: self.terms, starts, documents, gains, fields, rarities, unheard }
    }
}

fn averages(lengths: &[[u16; FIELDS]]) -> [f32; FIELDS] {
    std::array::from_fn(|field| {
        let total: u64 = lengths.iter().map(|lengths| u64::from(lengths[field])).sum();
        #[expect(clippy::cast_precision_loss, reason = "an average needs no more than seven digits")]
        let average = total as f32 / lengths.len().max(1) as f32;
        average.max(1.0)
    })
}

/// What one mention counts in each field of a document.
fn scales(lengths: &[u16; FIELDS], averages: &[f32; FIELDS]) -> [f32; FIELDS] {
    std::array::from_fn(|at| {
        let field = &WEIGHTS[at];
        field.weight / (1.0 - field.length + field.length * f32::from(lengths[at]) / averages[at])
    })
}

/// How often a term counts in a document, all fields together, and the bits of those that hold it.
fn often(count: &Count, scales: &[f32; FIELDS]) -> (f32, u8) {
    let (mut often, mut bits) = (0.0, 0);
    for (field, (times, scale)) in count.fields.iter().zip(scales).enumerate() {
        often += f32::from(*times) * scale;
        bits |= u8::from(*times > 0) << field;
    }
    (often, bits)
}

fn rarity(documents: usize, held: u32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "counts of documents stay far below 2^24")]
    let (documents, held) = (documents as f32, held as f32);
    (1.0 + (documents - held + 0.5) / (held + 0.5)).ln()
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("an index has fewer than 2^32 words")
}

/// A map whose keys are hashes already.
type Table<T> = HashMap<u64, T, BuildHasherDefault<Hashed>>;

#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        // The map takes its buckets from one end and its tags from the other: both must differ.
        self.0 = hash ^ hash.rotate_left(32);
    }

    fn write(&mut self, _: &[u8]) {}
}
