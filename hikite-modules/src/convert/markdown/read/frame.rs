//! Stack of open blocks, innermost last. Beyond the depth limit no block is opened, and content goes to the innermost
//! open one.

use super::super::{Block, Callout, DEPTH_MAX, Inline, Item};

pub(super) enum Holder {
    Quote,
    Callout(Callout),
    List(Option<u64>),
    Item,
    Details(Vec<Inline>),
}

#[derive(Default)]
pub(super) struct Frames {
    top: Vec<Block>,
    open: Vec<Frame>,
    /// Number of blocks that were not opened for exceeding the depth limit.
    beyond: usize,
}

struct Frame {
    holder: Holder,
    blocks: Vec<Block>,
    items: Vec<Item>,
    checked: Option<bool>,
}

impl Frames {
    pub(super) fn open(&mut self, holder: Holder) {
        let is_item = matches!(holder, Holder::Item);
        let levels = self.open.iter().filter(|frame| !matches!(frame.holder, Holder::Item)).count();
        if self.beyond > 0 || !is_item && levels >= DEPTH_MAX {
            if let Holder::Details(summary) = holder {
                // Its end tag is not tracked beyond the depth limit.
                self.push(Block::Paragraph(summary));
            } else {
                self.beyond += 1;
            }
            return;
        }
        self.open.push(Frame { holder, blocks: Vec::new(), items: Vec::new(), checked: None });
    }

    pub(super) fn push(&mut self, block: Block) {
        match self.open.last_mut() {
            Some(frame) => frame.blocks.push(block),
            None => self.top.push(block),
        }
    }

    pub(super) fn extend(&mut self, blocks: Vec<Block>) {
        for block in blocks {
            self.push(block);
        }
    }

    /// Sets the checkbox of the open item.
    pub(super) fn check(&mut self, checked: bool) {
        if let Some(frame) = self.open.last_mut().filter(|_| self.beyond == 0) {
            frame.checked = Some(checked);
        }
    }

    /// Closes the innermost block, and all unclosed `<details>` in it.
    pub(super) fn close(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        while let Some(frame) = self.open.pop() {
            let is_details = matches!(frame.holder, Holder::Details(_));
            self.finished(frame);
            if !is_details {
                return;
            }
        }
    }

    pub(super) fn close_details(&mut self) {
        let is_details = |frame: &Frame| matches!(frame.holder, Holder::Details(_));
        if self.beyond == 0 && self.open.last().is_some_and(is_details) {
            self.close_one();
        }
    }

    fn close_one(&mut self) {
        if let Some(frame) = self.open.pop() {
            self.finished(frame);
        }
    }

    pub(super) fn finish(mut self) -> Vec<Block> {
        while let Some(frame) = self.open.pop() {
            self.finished(frame);
        }
        self.top
    }

    fn finished(&mut self, frame: Frame) {
        let Frame { holder, blocks, items, checked } = frame;
        let block = match holder {
            Holder::Quote => Block::Quote(blocks),
            Holder::Callout(kind) => Block::Callout { kind, blocks },
            Holder::List(start) => Block::List { start, items },
            Holder::Details(summary) => Block::Details { summary, blocks },
            Holder::Item => {
                if let Some(list) = self.open.last_mut() {
                    list.items.push(Item { checked, blocks });
                }
                return;
            }
        };
        self.push(block);
    }
}
