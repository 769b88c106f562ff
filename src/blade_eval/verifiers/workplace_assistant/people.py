"""Invent the staff of an office: who works there, under which address, and who shares a first name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

DOMAIN = "quillmarsh.example"  # a top-level domain that is reserved for examples
OWNER = "ines.vardal@quillmarsh.example"  # for whom the assistant works

DEPARTMENTS = ("Sales", "Support", "Finance", "Engineering", "Marketing", "Operations", "Legal", "People")
TITLES = ("Associate", "Specialist", "Analyst", "Lead", "Coordinator", "Manager")

# The first group is given to three people each, the second to two, the third to one.
THRICE = (
    "Nadia",
    "Tomas",
    "Freya",
    "Idris",
    "Marta",
    "Joel",
    "Ayla",
    "Simon",
    "Petra",
    "Ravi",
    "Lena",
    "Oskar",
)
TWICE = (
    "Bruno", "Celia", "Dmitri", "Elif", "Gareth", "Hanna", "Ivo", "Jonas", "Keiko", "Luca", "Maren", "Nils",
    "Olga",
    "Pablo", "Quinn", "Rosa", "Stefan", "Thea", "Umar", "Vera",
)  # fmt: skip
ONCE = (
    "Anselm", "Birte", "Cosmo", "Delphine", "Eamon", "Fadila", "Gitta", "Hakon", "Ilse", "Jarek", "Katya",
    "Lorcan",
    "Mirela", "Noor", "Odile", "Pavel", "Renske", "Saskia", "Tadeo", "Ulla", "Viktor", "Wilma", "Xenia",
    "Yusuf",
    "Zelda", "Bastian", "Corin", "Dagny", "Emeka", "Flora",
)  # fmt: skip
SURNAMES = (
    "Abbink", "Barlow", "Castellan", "Dunmore", "Eskelin", "Farrow", "Grantley", "Holloway", "Iversen",
    "Jessop",
    "Kestrel", "Lindqvist", "Marchetti", "Norwood", "Ostrander", "Penhallow", "Quist", "Rennick", "Sandoval",
    "Thornby", "Underhill", "Valdez", "Whitlock", "Yarrow", "Zeller", "Ashgrove", "Brandt", "Coldwell",
    "Drummond",
    "Ellery", "Fennimore", "Garnet", "Hartog", "Ingram", "Kowal", "Larkspur", "Mistry", "Novak",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Person:
    """One entry of the directory."""

    first: str
    last: str
    department: str
    title: str

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    @property
    def address(self) -> str:
        return f"{self.first}.{self.last}@{DOMAIN}".lower()


@cache
def staff() -> tuple[Person, ...]:
    """The directory by address; people of one first name are in different departments."""
    rng = Random("office/people")
    found = [Person("Ines", "Vardal", "Operations", "Manager")]
    for firsts, times in ((THRICE, 3), (TWICE, 2), (ONCE, 1)):
        for first in firsts:
            lasts, places = rng.sample(SURNAMES, times), rng.sample(DEPARTMENTS, times)
            found += [
                Person(first, last, place, rng.choice(TITLES))
                for last, place in zip(lasts, places, strict=True)
            ]
    return tuple(sorted(found, key=lambda person: person.address))


@cache
def by_address() -> dict[str, Person]:
    return {person.address: person for person in staff()}


def namesakes(first: str) -> tuple[Person, ...]:
    return tuple(person for person in staff() if person.first == first)
