//! BM25F ranking: weighted field frequencies are added up before saturation. The impact of each term on each document
//! is computed when the index is built, so a query only adds up the postings of its own terms.
//!
//! It is ours because a search engine such as `tantivy` keeps segments and threads for millions of documents, while
//! this ranks a few thousand tools in memory, below the mask of a view.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::document::ToolDocument;
use super::word::{TermStemmer, TextWord, WordReader, hash};

/// Saturation of term frequency (BM25's k1).
const K1: f32 = 1.2;

/// BM25F parameters of a field: its weight and its length normalisation (b).
struct FieldWeight {
    weight: f32,
    length: f32,
}

const FIELDS: usize = 6;
/// Parameters of the fields: name, module, description, parameter names, parameter descriptions, module description.
const WEIGHTS: [FieldWeight; FIELDS] = [
    FieldWeight { weight: 3.0, length: 0.5 },
    FieldWeight { weight: 1.5, length: 0.5 },
    FieldWeight { weight: 1.0, length: 0.75 },
    FieldWeight { weight: 0.6, length: 0.75 },
    FieldWeight { weight: 0.3, length: 0.75 },
    FieldWeight { weight: 0.2, length: 0.75 },
];
pub(super) const NAME: u8 = 1;
pub(super) const MODULE: u8 = 1 << 1;
pub(super) const DESCRIPTION: u8 = 1 << 2;

fn each_field<'a>(document: &'a ToolDocument, mut read: impl FnMut(usize, &'a str)) {
    read(0, &document.name);
    read(1, &document.module);
    read(2, &document.description);
    for (name, description) in &document.parameters {
        read(3, name);
        read(4, description);
    }
    read(5, &document.module_text);
}

/// Inverted index in flat arrays.
#[derive(Debug, Default)]
pub(super) struct LexicalIndex {
    terms: TermMap<u32>,
    /// Start of each term's postings; one entry more than there are terms.
    starts: Vec<u32>,
    documents: Vec<u32>,
    /// Impact of the term on the document.
    impacts: Vec<f32>,
    /// Bit set of the fields that contain the term.
    fields: Vec<u8>,
    /// Inverse document frequency of each term.
    idfs: Vec<f32>,
    /// Inverse document frequency of a term that is in no document.
    unseen_idf: f32,
}

/// Postings of one term.
#[derive(Clone, Copy, Debug)]
pub(super) struct Postings<'a> {
    pub(super) documents: &'a [u32],
    pub(super) impacts: &'a [f32],
    fields: &'a [u8],
}

impl LexicalIndex {
    pub(super) fn build(documents: &[ToolDocument]) -> Self {
        let mut counter = LexicalIndexBuilder::default();
        let mut reader = WordReader::default();
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
            impacts: &self.impacts[range.clone()],
            fields: &self.fields[range],
        })
    }

    /// Returns the impact of a term on one document, and the bit set of the fields that contain it.
    pub(super) fn impact_of(&self, term: u64, document: usize) -> (f32, u8) {
        let place = |postings: &Postings<'_>| {
            let document = u32::try_from(document).ok()?;
            postings.documents.binary_search(&document).ok()
        };
        let found = self.postings(term).and_then(|postings| Some((place(&postings)?, postings)));
        found.map_or((0.0, 0), |(at, postings)| (postings.impacts[at], postings.fields[at]))
    }

    /// Returns the inverse document frequency of a term; highest if no document contains it.
    pub(super) fn idf(&self, term: u64) -> f32 {
        self.terms.get(&term).map_or(self.unseen_idf, |at| self.idfs[*at as usize])
    }

    /// Returns the highest impact that a term can have on a document.
    pub(super) fn impact_max(&self, term: u64) -> f32 {
        self.idf(term) * (K1 + 1.0)
    }
}

/// Frequencies of one term in one document, by field.
struct TermCount {
    term: u32,
    fields: [u8; FIELDS],
}

/// Counts terms document by document. Impacts need the average field lengths and are computed at the end.
struct LexicalIndexBuilder {
    stems: TermStemmer,
    /// Terms by the hash of the unstemmed word, so that each word is stemmed only once.
    cached_term: TermMap<Option<u32>>,
    terms: TermMap<u32>,
    /// Per term, one more than the index in `counts` of its last count.
    last: Vec<u32>,
    document_frequencies: Vec<u32>,
    counts: Vec<TermCount>,
    /// End of each document's counts, and the lengths of its fields.
    ends: Vec<u32>,
    lengths: Vec<[u16; FIELDS]>,
}

impl Default for LexicalIndexBuilder {
    fn default() -> Self {
        Self {
            stems: TermStemmer::new(),
            cached_term: TermMap::default(),
            terms: TermMap::default(),
            last: Vec::new(),
            document_frequencies: Vec::new(),
            counts: Vec::new(),
            ends: Vec::new(),
            lengths: Vec::new(),
        }
    }
}

impl LexicalIndexBuilder {
    fn read(&mut self, document: &ToolDocument, reader: &mut WordReader) {
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
        self.ends.push(to_u32(self.counts.len()));
        self.lengths.push(lengths);
    }

    /// Returns the number of a word's term. Stop words count only in names: some tools have no other name.
    fn term(&mut self, word: TextWord<'_>, in_name: bool) -> Option<u32> {
        let known = hash(word.text);
        let cached_term = match self.cached_term.get(&known) {
            Some(cached_term) => *cached_term,
            None => {
                let cached_term = (!word.is_stop()).then(|| self.number(word));
                self.cached_term.insert(known, cached_term);
                cached_term
            }
        };
        cached_term.or_else(|| in_name.then(|| self.number(word)))
    }

    fn number(&mut self, word: TextWord<'_>) -> u32 {
        *self.terms.entry(self.stems.term(word)).or_insert_with(|| {
            self.last.push(0);
            self.document_frequencies.push(0);
            to_u32(self.last.len() - 1)
        })
    }

    fn count(&mut self, term: u32, field: usize, first: usize) {
        let last = &mut self.last[term as usize];
        let place = *last as usize;
        if place <= first {
            self.document_frequencies[term as usize] += 1;
            self.counts.push(TermCount { term, fields: [0; FIELDS] });
            *last = to_u32(self.counts.len());
        }
        let count = &mut self.counts[self.last[term as usize] as usize - 1].fields[field];
        *count = count.saturating_add(1);
    }

    fn finish(self) -> LexicalIndex {
        let idfs: Vec<f32> = self
            .document_frequencies
            .iter()
            .map(|document_frequency| idf(self.ends.len(), *document_frequency))
            .collect();
        let mut starts = Vec::with_capacity(self.document_frequencies.len() + 1);
        starts.push(0);
        let mut end = 0;
        starts.extend(self.document_frequencies.iter().map(|document_frequency| {
            end += document_frequency;
            end
        }));
        let mut free = starts.clone();
        let total = self.counts.len();
        let (mut documents, mut impacts, mut fields) = (vec![0; total], vec![0.0; total], vec![0; total]);
        let averages = averages(&self.lengths);
        let mut begin = 0;
        for (document, (end, lengths)) in self.ends.iter().zip(&self.lengths).enumerate() {
            let scales = scales(lengths, &averages);
            for count in &self.counts[begin..*end as usize] {
                let place = free[count.term as usize] as usize;
                free[count.term as usize] += 1;
                let (tf, bits) = tf(count, &scales);
                documents[place] = to_u32(document);
                impacts[place] = idfs[count.term as usize] * tf * (K1 + 1.0) / (tf + K1);
                fields[place] = bits;
            }
            begin = *end as usize;
        }
        let unseen_idf = idf(self.ends.len(), 0);
        LexicalIndex { terms: self.terms, starts, documents, impacts, fields, idfs, unseen_idf }
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

/// Returns the weight of one occurrence in each field of a document, normalised by field length.
fn scales(lengths: &[u16; FIELDS], averages: &[f32; FIELDS]) -> [f32; FIELDS] {
    std::array::from_fn(|at| {
        let field = &WEIGHTS[at];
        field.weight / (1.0 - field.length + field.length * f32::from(lengths[at]) / averages[at])
    })
}

/// Returns the weighted frequency of a term over all fields, and the bit set of the fields that contain it.
fn tf(count: &TermCount, scales: &[f32; FIELDS]) -> (f32, u8) {
    let (mut tf, mut bits) = (0.0, 0);
    for (field, (times, scale)) in count.fields.iter().zip(scales).enumerate() {
        tf += f32::from(*times) * scale;
        bits |= u8::from(*times > 0) << field;
    }
    (tf, bits)
}

fn idf(documents: usize, document_frequency: u32) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "counts of documents stay far below 2^24")]
    let (documents, document_frequency) = (documents as f32, document_frequency as f32);
    (1.0 + (documents - document_frequency + 0.5) / (document_frequency + 0.5)).ln()
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).expect("an index has fewer than 2^32 words")
}

/// A map whose keys are hashes already.
type TermMap<T> = HashMap<u64, T, BuildHasherDefault<PassthroughHasher>>;

#[derive(Debug, Default)]
struct PassthroughHasher(u64);

impl Hasher for PassthroughHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        // The hash table takes buckets from the low bits and tags from the high bits; both must differ.
        self.0 = hash ^ hash.rotate_left(32);
    }

    fn write(&mut self, _: &[u8]) {}
}
